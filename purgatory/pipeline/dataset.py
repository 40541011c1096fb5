"""The paths and tables of a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from purgatory.pipeline import files
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.schemas import (
    BATCH,
    CHECKS_TABLE,
    COMMITS,
    GAPS_TABLE,
    OPERATIONS_TABLE,
    QUARANTINE,
    Table,
)


@dataclass(frozen=True, slots=True)
class Dataset:
    """The directory that `compact` fills and all other commands read: any path that Spark can use.

    The read methods leave out batches that a killed `compact` did not commit. They raise PipelineError if
    nothing has been compacted.
    """

    root: str

    @property
    def operations(self) -> str:
        return self.table(OPERATIONS_TABLE)

    @property
    def checks(self) -> str:
        return self.table(CHECKS_TABLE)

    @property
    def gaps(self) -> str:
        return self.table(GAPS_TABLE)

    @property
    def quarantine(self) -> str:
        return self._at("quarantine")

    @property
    def commits(self) -> str:
        """The batches that are committed, with their counts (schemas.COMMITS)."""
        return self._at("commits")

    def table(self, table: Table) -> str:
        return self._at(table.name)

    def summary(self, name: str) -> str:
        return self._at(f"summary/{name}")

    def advice(self, name: str) -> str:
        return self._at(f"advice/{name}")

    def replay(self, name: str) -> str:
        return self._at(f"replay/{name}")

    def checkpoint(self, name: str) -> str:
        return self._at(f"checkpoints/{name}")

    def read_operations(self, spark: SparkSession) -> DataFrame:
        """The operations, with the columns of schemas.COMPACTED_OPERATIONS."""
        return self.read(spark, OPERATIONS_TABLE)

    def read_checks(self, spark: SparkSession) -> DataFrame:
        """The checks, with the columns of schemas.COMPACTED_CHECKS."""
        return self.read(spark, CHECKS_TABLE)

    def read_gaps(self, spark: SparkSession) -> DataFrame:
        """The gaps, with the columns of schemas.COMPACTED_GAPS."""
        return self.read(spark, GAPS_TABLE)

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """The rows of all committed batches of a table."""
        if not files.exists(spark, self.commits):
            raise PipelineError(
                f"{self.root}: nothing is compacted here; run: purgatory-pipeline compact JOURNAL {self.root}"
            )
        return self.committed_batches(spark, table)

    def read_quarantine(self, spark: SparkSession) -> DataFrame:
        """The refused rows, with the columns of schemas.QUARANTINE."""
        return (
            _read(spark, self.quarantine, QUARANTINE)
            .join(
                F.broadcast(self.read_commits(spark).select("table", "batch")),
                ["table", "batch"],
                "left_semi",
            )
            .select(*QUARANTINE.names)
        )

    def read_commits(self, spark: SparkSession, table: Table | None = None) -> DataFrame:
        """The commits of one table or of all, with the columns of schemas.COMMITS."""
        return _read(spark, self.commits, COMMITS, None if table is None else [f"table={table.name}"])

    def is_committed(self, spark: SparkSession, table: Table, batch: int) -> bool:
        """Whether the batch has a commit."""
        return files.exists(spark, f"{self.commits}/table={table.name}/batch={batch}")

    def committed_batches(
        self, spark: SparkSession, table: Table, dates: Iterable[date] | None = None
    ) -> DataFrame:
        """As `read`, but empty if nothing is compacted yet. Of the given dates, or of all."""
        committed = self.read_commits(spark, table).select("batch")
        rows = self.all_batches(spark, table, dates)
        return rows.join(F.broadcast(committed), "batch", "left_semi").select(*table.compacted.names)

    def all_batches(
        self, spark: SparkSession, table: Table, dates: Iterable[date] | None = None
    ) -> DataFrame:
        """All rows with their ``batch``, committed or not. Of the given dates, or of all.

        Does not list the directories of other dates.
        """
        parts = None if dates is None else [f"date={date}" for date in dates]
        return _read(spark, self.table(table), StructType([*table.compacted, BATCH]), parts)

    def _at(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"


def _read(
    spark: SparkSession, path: str, schema: StructType, parts: Iterable[str] | None = None
) -> DataFrame:
    """The rows in the directories `parts` of a table, or in all of it. Empty if they do not exist."""
    paths = [path] if parts is None else [f"{path}/{part}" for part in parts]
    found = [each for each in paths if files.exists(spark, each)]
    if not found:
        # With a limit of 0 Spark knows that the frame is empty before it runs.
        return spark.createDataFrame([], schema).limit(0)
    return spark.read.schema(schema).option("basePath", path).parquet(*found)
