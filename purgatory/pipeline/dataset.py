"""Where the pipeline keeps what."""

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
    """A directory that `compact` fills and all else reads: any path that Spark knows.

    A compacted table is read by its method, which leaves out what a killed `compact` has written half. A
    reader raises PipelineError where nothing has been compacted.
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
        """Which batches are whole, and how their rows add up (schemas.COMMITS)."""
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
        """Of schemas.COMPACTED_OPERATIONS."""
        return self.read(spark, OPERATIONS_TABLE)

    def read_checks(self, spark: SparkSession) -> DataFrame:
        """Of schemas.COMPACTED_CHECKS."""
        return self.read(spark, CHECKS_TABLE)

    def read_gaps(self, spark: SparkSession) -> DataFrame:
        """Of schemas.COMPACTED_GAPS."""
        return self.read(spark, GAPS_TABLE)

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """The rows of all batches of it that are whole."""
        if not files.exists(spark, self.commits):
            raise PipelineError(
                f"{self.root}: nothing is compacted here; run: purgatory-pipeline compact JOURNAL {self.root}"
            )
        return self.whole_batches(spark, table)

    def read_quarantine(self, spark: SparkSession) -> DataFrame:
        """Of schemas.QUARANTINE."""
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
        """Of schemas.COMMITS; of one table, or of all."""
        return _read(spark, self.commits, COMMITS, None if table is None else [f"table={table.name}"])

    def is_whole(self, spark: SparkSession, table: Table, batch: int) -> bool:
        """Whether it has a commit."""
        return files.exists(spark, f"{self.commits}/table={table.name}/batch={batch}")

    def whole_batches(
        self, spark: SparkSession, table: Table, dates: Iterable[date] | None = None
    ) -> DataFrame:
        """As `read`, and without a row where nothing is compacted yet; of these dates, or of all."""
        whole = self.read_commits(spark, table).select("batch")
        rows = self.batches(spark, table, dates)
        return rows.join(F.broadcast(whole), "batch", "left_semi").select(*table.compacted.names)

    def batches(self, spark: SparkSession, table: Table, dates: Iterable[date] | None = None) -> DataFrame:
        """All rows with their ``batch``, also of those batches that are not whole; of these dates, or of all.

        The directories of other dates are not even listed.
        """
        parts = None if dates is None else [f"date={date}" for date in dates]
        return _read(spark, self.table(table), StructType([*table.compacted, BATCH]), parts)

    def _at(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"


def _read(
    spark: SparkSession, path: str, schema: StructType, parts: Iterable[str] | None = None
) -> DataFrame:
    """Of these directories in it, or of all, where they are there."""
    paths = [path] if parts is None else [f"{path}/{part}" for part in parts]
    found = [each for each in paths if files.exists(spark, each)]
    if not found:
        # By this Spark knows that it is empty before it looks.
        return spark.createDataFrame([], schema).limit(0)
    return spark.read.schema(schema).option("basePath", path).parquet(*found)
