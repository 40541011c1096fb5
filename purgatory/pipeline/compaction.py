"""Reads batches of segments, and adds their rows to one table of a dataset: each row once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.batches import Batches, BatchFiles
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.listing import Segment
from purgatory.pipeline.schemas import Table
from purgatory.pipeline.tally import Counts, Tally
from purgatory.pipeline.transforms.duplicates import new_identities, without_duplicates
from purgatory.pipeline.transforms.segments import read
from purgatory.pipeline.transforms.validation import validated

# In bytes. A task reads segments of about so many together.
_TASK_SIZE: Final = 32 << 20


class Compaction:
    """Adds segments to one table of a dataset, and counts their files and rows."""

    def __init__(self, spark: SparkSession, dataset: Dataset, table: Table) -> None:
        self._spark = spark
        self._dataset = dataset
        self._table = table
        self.added = Counts()
        # How many rows and files were refused, by reason.
        self.reasons: Counter[str] = Counter()
        # How many files were refused by an earlier run, and have not changed since.
        self.still_refused = 0

    def __repr__(self) -> str:
        return f"<Compaction of {self._table.name} into {self._dataset.root}: {self.added}>"

    def add(self, found: Sequence[Segment], files_per_batch: int, *, retry: bool = False) -> None:
        """Add those of the segments that are new, or that could not be read and have changed.

        With `retry`, read all segments again that could not be read. Raises PipelineError if a segment is
        gone before it is read, or if another process adds segments to the same table.
        """
        batches = Batches(self._dataset, self._table)
        new = self._new(batches, found, retry)
        for first in range(0, len(new), files_per_batch):
            self._add(batches, new[first : first + files_per_batch])

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
        if self.still_refused:
            lines.append(f"  {self.still_refused} files unreadable as before; --retry reads them again")
        return "\n".join(lines)

    def _new(self, batches: Batches, found: Sequence[Segment], retry: bool) -> list[Segment]:
        before = batches.read_before(found)
        new = []
        for segment in found:
            row = before.get(segment.name)
            if row is not None and row["reason"] is None:
                continue
            changed = row is None or (row["size"], row["modified"]) != (segment.size, segment.modified)
            if changed or retry:
                new.append(segment)
            else:
                self.still_refused += 1
        return new

    def _add(self, batches: Batches, segments: Sequence[Segment]) -> None:
        rows = self._read(segments).persist()
        try:
            tally = Tally(rows)
            files = self._write(rows, tally, segments, batches.last + 1)
        except (PySparkException, Py4JJavaError) as error:
            gone = [each.path for each in segments if not os.path.exists(each.path)]
            if not gone:
                raise
            raise PipelineError(
                f"{gone[0]}: it was moved or deleted before compact had read it, so none of the "
                f"{len(segments)} segments of its batch was added; run compact again where the journal is now"
            ) from error
        finally:
            rows.unpersist()
        batches.commit(files)
        self.added += tally.counts
        self.reasons += tally.reasons

    def _read(self, segments: Sequence[Segment]) -> DataFrame:
        """The rows of the segments, each with its date, or with the reason for which it is refused."""
        context = self._spark.sparkContext
        tasks = max(context.defaultParallelism, sum(each.size for each in segments) // _TASK_SIZE)
        paths = context.parallelize([(each.path,) for each in segments], min(tasks, len(segments)))
        return validated(read(self._spark.createDataFrame(paths, "path string"), self._table), self._table)

    def _write(self, rows: DataFrame, tally: Tally, segments: Sequence[Segment], batch: int) -> BatchFiles:
        """Write the files of a batch."""
        dataset, table = self._dataset, self._table
        unread = [each.path for each in segments if each.path not in tally.rows]
        if unread:
            raise PipelineError(
                f"{unread[0]}: Spark has not read it, and its batch was not added; run compact again"
            )
        kept, new = self._new_rows(rows, tally)
        files = BatchFiles(
            rows=dataset.table(table).write(kept) if new else [],
            quarantine=dataset.quarantine.write(self._refused(rows, batch)) if tally.refused else [],
            segments=dataset.segments.write_rows(
                [{**tally.row(segment), "table": table.name, "batch": batch} for segment in segments]
            ),
        )
        written, quarantined = (sum(each.rows for each in part) for part in (files.rows, files.quarantine))
        if (written, quarantined) != (new, tally.refused.total()) or not tally.adds_up:
            raise PipelineError(
                f"{dataset.root}: the rows of batch {batch} of {table.name} do not add up, so it was not "
                f"added; run compact again: {tally.counts}; new {new}, written {written} and {quarantined}"
            )
        return files

    def _new_rows(self, rows: DataFrame, tally: Tally) -> tuple[DataFrame, int]:
        """The valid rows that are no duplicates, and their number. The tally counts them by their files."""
        table = self._table
        kept = rows.where(F.col("position").isNotNull() & F.col("reason").isNull())
        valid = new = tally.valid.total()
        if table.identity and valid:
            known = self._dataset.table(table).read(self._spark, tally.dates)
            new = new_identities(kept, known, table.identity).count()
            # Usually there are no duplicates, and removing them means to sort all rows.
            if new < valid:
                kept = without_duplicates(kept, known, table.identity)
                counted = kept.groupBy("source").count().collect()
                tally.kept = Counter({row["source"]: row["count"] for row in counted})
        by_date = kept.select(*table.compacted.names).hint("rebalance", "date")
        return by_date.sortWithinPartitions(*table.order_by), new

    def _refused(self, rows: DataFrame, batch: int) -> DataFrame:
        """The rows for the quarantine."""
        return rows.where(F.col("position").isNotNull() & F.col("reason").isNotNull()).select(
            "source",
            "position",
            "reason",
            F.to_json(F.struct(*self._table.recorded.names), {"ignoreNullFields": "false"}).alias("row"),
            F.lit(self._table.name).alias("table"),
            F.lit(batch).cast("long").alias("batch"),
        )
