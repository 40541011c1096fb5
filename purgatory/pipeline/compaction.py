"""Adds batches of segments to one table of a dataset, each exactly once.

Spark's checkpoint numbers the batches. Spark offers a batch again, with the same number and files, until the
checkpoint says that it is done. Here a batch is committed when it has a row in the table of commits. All its
files have its number in their path: nobody reads them before the commit, and a second attempt overwrites
them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline import files
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.schemas import COMMITS, QUARANTINE, Table
from purgatory.pipeline.transforms.duplicates import new_identities, without_duplicates
from purgatory.pipeline.transforms.segments import decoded
from purgatory.pipeline.transforms.validation import validated


@dataclass(frozen=True, slots=True)
class Commit:
    """The counts of a batch; see schemas.COMMITS."""

    files: int = 0
    unreadable_files: int = 0
    rows: int = 0
    kept: int = 0
    duplicates: int = 0
    quarantined: int = 0

    def __add__(self, other: Commit) -> Commit:
        return Commit(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class Compaction:
    """Adds batches of segments, and counts their files and rows."""

    def __init__(self, dataset: Dataset, table: Table) -> None:
        self._dataset = dataset
        self._table = table
        self.added = Commit()
        # How many rows and files were refused, by reason.
        self.reasons: Counter[str] = Counter()
        # The error that `add` raised.
        self.failure: Exception | None = None

    def __repr__(self) -> str:
        return f"<Compaction of {self._table.name} into {self._dataset.root}: {self.added}>"

    def add(self, segments: DataFrame, batch: int) -> None:
        """Add the rows in `segments` (path, content), unless the batch is committed."""
        try:
            self._add(segments, batch)
        except Exception as error:
            self.failure = error
            raise

    def report(self) -> str:
        """The counts in words, and the reasons for refusals."""
        added = self.added
        lines = [
            f"{self._table.name}: {added.files} new files, {added.rows} rows = {added.kept} kept "
            f"+ {added.duplicates} duplicates + {added.quarantined} quarantined"
        ]
        if added.unreadable_files:
            lines[0] += f"; {added.unreadable_files} files unreadable"
        lines += [f"  {count} x {reason}" for reason, count in self.reasons.most_common()]
        return "\n".join(lines)

    def _add(self, segments: DataFrame, batch: int) -> None:
        spark = segments.sparkSession
        # Off by default in streams, because it breaks stateful ones. Here it balances the sizes of the files.
        spark.conf.set("spark.sql.adaptive.enabled", "true")
        if self._dataset.is_committed(spark, self._table, batch):
            return
        rows = validated(decoded(segments, self._table), self._table).persist()
        try:
            commit, reasons = self._write(rows, batch)
        finally:
            rows.unpersist()
        if commit.rows != commit.kept + commit.duplicates + commit.quarantined:
            raise PipelineError(
                f"{self._dataset.root}: the rows of batch {batch} of {self._table.name} do not add up, "
                f"and it was not added: {commit}"
            )
        row = spark.range(1).select(
            *(F.lit(value).alias(name) for name, value in zip(COMMITS.names, astuple(commit), strict=False)),
            F.lit(self._table.name).alias("table"),
            F.lit(batch).alias("batch"),
        )
        _overwrite(row, self._dataset.commits, "table", "batch")
        self.added += commit
        self.reasons += reasons

    def _write(self, rows: DataFrame, batch: int) -> tuple[Commit, Counter[str]]:
        """Write all but the commit. Its counts come from the rows read and from the files written."""
        dataset, table, spark = self._dataset, self._table, rows.sparkSession
        tally = (
            rows.groupBy("date", "reason")
            .agg(
                F.count("position").alias("rows"),
                F.count_if(F.col("position").isNull()).alias("files"),
                F.coalesce(F.sum("file_rows"), F.lit(0)).alias("file_rows"),
            )
            .collect()
        )
        valid = rows.where(F.col("position").isNotNull() & F.col("reason").isNull())
        count = sum(group["rows"] for group in tally if group["reason"] is None)
        new = count
        kept = valid
        dates = {group["date"] for group in tally if group["date"] is not None}
        if table.identity:
            known = dataset.committed_batches(spark, table, dates)
            new = new_identities(valid, known, table.identity).count()
            # Usually there are no duplicates, and removing them means to sort all rows.
            if new < count:
                kept = without_duplicates(valid, known, table.identity)
        _overwrite(
            kept.select(*table.compacted.names, F.lit(batch).alias("batch"))
            .hint("rebalance", *table.partitions)
            .sortWithinPartitions(*table.partitions, table.instant),
            dataset.table(table),
            *table.partitions,
            "batch",
        )
        reasons: Counter[str] = Counter()
        for group in tally:
            if group["reason"] is not None:
                reasons[group["reason"]] += group["rows"] + group["files"]
        if reasons:
            _overwrite(
                rows.where(F.col("reason").isNotNull()).select(
                    "source",
                    "position",
                    "reason",
                    F.when(
                        F.col("position").isNotNull(),
                        F.to_json(F.struct(*table.recorded.names), {"ignoreNullFields": "false"}),
                    ).alias("row"),
                    F.lit(table.name).alias("table"),
                    F.lit(batch).alias("batch"),
                ),
                dataset.quarantine,
                "table",
                "batch",
            )
        refused = f"{dataset.quarantine}/table={table.name}/batch={batch}"
        commit = Commit(
            files=sum(group["files"] for group in tally),
            unreadable_files=sum(group["files"] for group in tally if group["reason"] is not None),
            rows=sum(group["file_rows"] for group in tally),
            kept=dataset.all_batches(spark, table, dates).where(F.col("batch") == batch).count(),
            duplicates=count - new,
            quarantined=(
                spark.read.schema(QUARANTINE).parquet(refused).where(F.col("position").isNotNull()).count()
                if files.exists(spark, refused)
                else 0
            ),
        )
        return commit, reasons


def _overwrite(frame: DataFrame, path: str, *partitions: str) -> None:
    """Write the frame. It replaces the partitions that it has rows for."""
    (
        frame.write.mode("overwrite")
        .option("partitionOverwriteMode", "dynamic")
        .partitionBy(*partitions)
        .parquet(path)
    )
