"""Reads batches of segments, and adds their rows to one table of a dataset: each row once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, Final

import numpy as np
from py4j.protocol import Py4JJavaError
from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.batches import Batches, BatchFiles
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import DataFile
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.intake import Intake, Positions, ReadSegment, take_in
from purgatory.pipeline.listing import Segment
from purgatory.pipeline.schemas import Table
from purgatory.pipeline.sizing import fit
from purgatory.pipeline.tally import Counts
from purgatory.pipeline.transforms.duplicates import duplicates, has_duplicates, new_identities
from purgatory.pipeline.transforms.segments import read

# In bytes. The segments that one task reads have about this size together.
_TASK_SIZE: Final = 32 << 20


class Compaction:
    """Adds segments to one table of a dataset, and counts their files and rows."""

    def __init__(self, spark: SparkSession, dataset: Dataset, table: Table) -> None:
        self._spark = spark
        self._dataset = dataset
        self._table = table
        self.added = Counts()
        # The number of rows and files that were refused, by reason.
        self.reasons: Counter[str] = Counter()
        # The number of files that an earlier run refused, and that have not changed since.
        self.still_refused = 0

    def __repr__(self) -> str:
        return f"<Compaction of {self._table.name} into {self._dataset.root}: {self.added}>"

    def add(self, found: Sequence[Segment], files_per_batch: int, *, retry: bool = False) -> None:
        """Add the new segments, and the segments that could not be read before and have changed since.

        With `retry`, read all segments that could not be read before. Raises PipelineError if a segment is
        gone before it is read, or if another process adds segments to the same table.
        """
        batches = Batches(self._dataset, self._table)
        new = self._new(batches, found, retry)
        fit(self._spark, sum(each.size for each in new[:files_per_batch]))
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
        batch = batches.last + 1
        try:
            intake = self._taken_in(segments, batch)
        except (PySparkException, Py4JJavaError) as error:
            gone = [each.path for each in segments if not os.path.exists(each.path)]
            if not gone:
                raise
            raise PipelineError(
                f"{gone[0]}: it was moved or deleted before compact had read it, so none of the "
                f"{len(segments)} segments of its batch was added; run compact again where the journal is now"
            ) from error
        read = {each.source: each for each in intake.segments}
        rows = [self._row(segment, read[segment.path], batch) for segment in segments]
        batches.commit(
            BatchFiles(
                rows=intake.rows,
                quarantine=intake.quarantine,
                segments=self._dataset.segments.write_rows(rows),
            )
        )
        self.added += Counts.of(intake.segments)
        for each in intake.segments:
            self.reasons.update(each.refused if each.problem is None else {each.problem: 1})

    def _taken_in(self, segments: Sequence[Segment], batch: int) -> Intake:
        """Write the rows of the segments, but no duplicates, to files that are in no commit yet."""
        intake = self._checked(self._run(segments, batch, {}), segments)
        identity = self._table.identity
        if not (identity and intake.rows):
            return intake
        # Usually there are no duplicates. To find the duplicates, Spark has to sort all rows.
        stored = self._dataset.table(self._table)
        written = [stored.path_of(file.path) for file in intake.rows]
        known = stored.paths({date.fromisoformat(file.date) for file in intake.rows if file.date})
        if not has_duplicates(self._spark.sparkContext, self._table, [*known, *written]):
            return intake
        rows, others = (stored.read_files(self._spark, paths) for paths in (written, known))
        readable = [each.source for each in intake.segments if each.problem is None]
        drop = self._duplicates(readable, others)
        again = self._checked(self._run(segments, batch, drop), segments)
        if _rows(again.rows) != new_identities(rows, others, identity).count():
            raise self._wrong(again)
        return again

    def _run(self, segments: Sequence[Segment], batch: int, drop: Mapping[str, Positions]) -> Intake:
        dataset = Dataset(os.path.abspath(self._dataset.root))
        paths = self._tasks([each.path for each in segments], sum(each.size for each in segments))
        return Intake.of(paths.mapPartitions(partial(take_in, dataset, self._table, batch, drop)).collect())

    def _tasks(self, paths: Sequence[str], size: int) -> RDD[str]:
        context = self._spark.sparkContext
        tasks = max(context.defaultParallelism, size // _TASK_SIZE)
        return context.parallelize(paths, min(tasks, len(paths)))

    def _checked(self, intake: Intake, segments: Sequence[Segment]) -> Intake:
        """Return the intake if it is complete. Raises PipelineError if it lacks a segment, or rows."""
        read = {each.source for each in intake.segments}
        unread = [each.path for each in segments if each.path not in read]
        if unread:
            raise PipelineError(
                f"{unread[0]}: Spark has not read it, and its batch was not added; run compact again"
            )
        counts = Counts.of(intake.segments)
        if (counts.kept, counts.quarantined) != (_rows(intake.rows), _rows(intake.quarantine)):
            raise self._wrong(intake)
        return intake

    def _wrong(self, intake: Intake) -> PipelineError:
        return PipelineError(
            f"{self._dataset.root}: the rows of a batch of {self._table.name} do not add up, so the batch "
            f"was not added; run compact again: {Counts.of(intake.segments)}; written "
            f"{_rows(intake.rows)} and {_rows(intake.quarantine)}"
        )

    def _duplicates(self, paths: Sequence[str], known: DataFrame) -> Mapping[str, Positions]:
        """The positions of the duplicates in each segment."""
        table = self._table
        files = self._spark.createDataFrame([(path,) for path in paths], "path string")
        rows = read(files.repartition(self._spark.sparkContext.defaultParallelism), table)
        valid = rows.where("position IS NOT NULL AND reason IS NULL").withColumn(
            "date", F.to_date(table.instant)
        )
        found = duplicates(valid, known, table.identity)
        by_file = found.groupBy("source").agg(F.collect_list("position").alias("positions"))
        return {row["source"]: np.array(row["positions"]) for row in by_file.toLocalIterator()}

    def _row(self, segment: Segment, read: ReadSegment, batch: int) -> Mapping[str, Any]:
        """The row about this segment in the table of segments; see schemas.SEGMENTS."""
        return {
            "table": self._table.name,
            "name": segment.name,
            "source": segment.path,
            "size": segment.size,
            "modified": segment.modified,
            "rows": read.rows,
            "kept": read.kept,
            "duplicates": read.duplicates,
            "quarantined": read.quarantined,
            "reason": read.problem,
            "batch": batch,
        }


def _rows(files: Sequence[DataFile]) -> int:
    return sum(file.rows for file in files)
