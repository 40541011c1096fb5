"""Reads batches of segments, and adds their rows to one table of a dataset: each row once."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError

from purgatory.pipeline import locations
from purgatory.pipeline.addresses import absolute
from purgatory.pipeline.batches import Batches, BatchFiles
from purgatory.pipeline.copies import copied, copies_in
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import DataFile
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.exchange import dealt
from purgatory.pipeline.intake import Counts, Intake, ReadSegment, take_in
from purgatory.pipeline.listing import Segment
from purgatory.pipeline.recorded import Recorded
from purgatory.pipeline.schemas import Table
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.text import counted
from purgatory.pipeline.transforms.duplicates import Positions, duplicates, identities


class Compaction:
    """Adds segments to one table of a dataset, and counts their files and rows."""

    def __init__(self, spark: Spark, dataset: Dataset, table: Table) -> None:
        self._spark = spark
        # The token tells the files of this compaction from others.
        self._dataset = replace(dataset, token=f"{uuid4().hex[:12]}-")
        self._table = table
        # The counts of the files that were read. Copies are not counted here.
        self.added = Counts()
        # The number of files that have the bytes of a file that was read.
        self.copies = 0
        # The number of files that were read, and that have the name of another file.
        self.namesakes = 0
        # The number of files that were read again, because they have changed.
        self.changed = 0
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
        recorded = batches.recorded()
        new = self._new(recorded, found, retry)
        names = Counter(each.name for each in found)
        try:
            for first in range(0, len(new), files_per_batch):
                batch = new[first : first + files_per_batch]
                for segment, its in self._add(batches, recorded, batch):
                    if not its.copy:
                        before = recorded.latest(segment)
                        self.namesakes += names[segment.name] > 1
                        self.changed += before is not None and before["reason"] is None
                    recorded.add(self._row(segment, its, batches.last))
        except (Exception, KeyboardInterrupt):
            batches.clean()
            raise
        # Tasks that Spark has repeated, and the first reading of duplicates, leave files, too.
        batches.clean()

    def report(self) -> str:
        """The counts in words, and the reasons for refusals."""
        added = self.added
        lines = [
            f"{self._table.name}: {counted(added.files, 'new file')}, {counted(added.rows, 'row')} = "
            f"{added.kept:,} kept + {counted(added.duplicates, 'duplicate')} + "
            f"{added.quarantined:,} quarantined"
        ]
        if added.unreadable_files:
            lines[0] += f"; {counted(added.unreadable_files, 'file')} unreadable"
        lines += [f"  {count:,} x {reason}" for reason, count in self.reasons.most_common()]
        lines += [
            # Each text is right for one file and for many.
            f"  {counted(count, 'file')} {what}"
            for count, what in (
                (self.namesakes, "had the name of another file, and counted as new, too"),
                (self.changed, "had changed since the last reading, and counted as new"),
                (self.copies, "had the bytes of a file that was read, and added no rows"),
                (self.still_refused, "unreadable as before; --retry reads all such files again"),
            )
            if count
        ]
        return "\n".join(lines)

    def _new(self, recorded: Recorded, found: Sequence[Segment], retry: bool) -> list[Segment]:
        new = []
        for segment in found:
            if recorded.was_read(segment):
                continue
            reason = recorded.refusal(segment)
            if reason is None or retry or _is_allowed_now(segment, reason):
                new.append(segment)
            else:
                self.still_refused += 1
        return new

    def _add(
        self, batches: Batches, recorded: Recorded, segments: Sequence[Segment]
    ) -> Sequence[tuple[Segment, ReadSegment]]:
        """Commit the next batch. Returns what was read of each segment."""
        batch = batches.last + 1
        copies = copies_in(segments)
        others = [each for each in segments if each.path not in copies]
        try:
            intake = self._taken_in(others, batch, recorded.rows_by_digest(others))
        except Py4JJavaError as error:
            gone = [each.source for each in segments if not locations.exists(each.path)]
            if not gone:
                raise
            raise PipelineError(
                f"{gone[0]}: it was moved or deleted before compact had read it, so its batch of "
                f"{counted(len(segments), 'segment')} was not added; run compact again where the journal is "
                "now"
            ) from error
        by_path = {each.path: each for each in intake.segments}
        by_path |= {path: copied(path, by_path[first], digest) for path, (first, digest) in copies.items()}
        read = [(segment, by_path[segment.path]) for segment in segments]
        batches.commit(
            BatchFiles(
                rows=intake.rows,
                quarantine=intake.quarantine,
                segments=self._dataset.segments.write_rows([self._row(*each, batch) for each in read]),
            )
        )
        for _, its in read:
            self.copies += its.copy
            self.reasons.update(its.refused if its.problem is None else {its.problem: 1})
        self.added += Counts.of(its for _, its in read if not its.copy)
        return read

    def _taken_in(self, segments: Sequence[Segment], batch: int, read: Mapping[str, int]) -> Intake:
        """Write the rows of the segments, but no duplicates, to files that are in no commit yet."""
        intake = self._checked(self._run(segments, batch, read, {}), segments)
        identity = self._table.identity
        if not (identity and intake.rows):
            return intake
        # Usually there are no duplicates. To find the duplicates, Spark has to sort all rows.
        stored = self._dataset.table(self._table)
        written = [stored.path_of(file.path) for file in intake.rows]
        known = stored.paths({date.fromisoformat(file.date) for file in intake.rows if file.date})
        rows, distinct = identities(self._spark, self._table, [*known, *written])
        if rows == distinct:
            return intake
        once = [each.path for each in intake.segments if each.problem is None and not each.copy]
        drop = duplicates(self._spark, self._table, once, known)
        again = self._checked(self._run(segments, batch, read, drop), segments)
        rewritten = [stored.path_of(file.path) for file in again.rows]
        unchanged = _digests(again) == _digests(intake)
        # No identity may be lost.
        if not unchanged or identities(self._spark, self._table, [*known, *rewritten])[1] != distinct:
            raise self._wrong(again)
        return again

    def _run(
        self,
        segments: Sequence[Segment],
        batch: int,
        read: Mapping[str, int],
        drop: Mapping[str, Positions],
    ) -> Intake:
        dataset = replace(self._dataset, root=absolute(self._dataset.root))
        reader = partial(take_in, dataset, self._table, batch, read, drop)
        tasks = dealt(self._spark, {each.path: each.size for each in segments})
        return sum(tasks.flatMap(reader).collect(), start=Intake([], [], []))

    def _checked(self, intake: Intake, segments: Sequence[Segment]) -> Intake:
        """Return the intake if it is complete. Raises PipelineError if it lacks a segment, or rows."""
        read = {each.path for each in intake.segments}
        unread = [each.source for each in segments if each.path not in read]
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

    def _row(self, segment: Segment, read: ReadSegment, batch: int) -> Mapping[str, Any]:
        """The row about this segment in the table of segments; see schemas.SEGMENTS."""
        return {
            "table": self._table.name,
            "name": segment.name,
            "source": segment.source,
            "size": segment.size,
            "modified": segment.modified,
            "rows": read.rows,
            "kept": read.kept,
            "duplicates": read.duplicates,
            "quarantined": read.quarantined,
            "reason": read.problem,
            "batch": batch,
            "digest": read.digest,
        }


def _is_allowed_now(segment: Segment, reason: str) -> bool:
    """Whether the system refused to read the segment, and would not any more."""
    return os.strerror(errno.EACCES) in reason and locations.is_readable(segment.path)


def _digests(intake: Intake) -> set[tuple[str, str | None]]:
    return {(each.path, each.digest) for each in intake.segments}


def _rows(files: Sequence[DataFile]) -> int:
    return sum(file.rows for file in files)
