"""Reads a journal as it grows."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from purgatory.journal.schema import SCHEMAS
from purgatory.pipeline.exchange import dealt
from purgatory.pipeline.listing import Segment, segments, text_of
from purgatory.pipeline.schemas import GAPS_TABLE, OPERATIONS_TABLE, Table
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.sql import select
from purgatory.pipeline.transforms.segments import UnreadableError, content_of, rows_in
from purgatory.pipeline.transforms.validation import reasons
from purgatory.pipeline.watch.monitor import Gap, Monitor
from purgatory.pipeline.watch.notice import Notice
from purgatory.pipeline.watch.windows import Windows

# The highest difference between clocks that is allowed.
_CLOCK_SKEW: Final = timedelta(minutes=1)
# A row with a wrong date would close all windows before that date.
_FUTURE: Final = "it ended in the future"

# When the operation or the gap of a row ended, in SQL.
_ENDS: Final = {OPERATIONS_TABLE: "ended_us(started, waited_us)", GAPS_TABLE: "epoch_us(ended)"}
_GAPS: Final = """
SELECT node, epoch_us(began) AS began, epoch_us(ended) AS ended, lost_operations, lost_checks FROM rows
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of some segments of a table."""

    # What a query has made of the valid rows, and the number of these rows.
    found: pa.Table
    valid: int
    # The numbers of files and rows that were refused, and the reasons for some of them.
    files: int = 0
    rows: int = 0
    examples: frozenset[str] = frozenset()

    def __add__(self, other: Reading) -> Reading:
        return Reading(
            pa.concat_tables([self.found, other.found]),
            self.valid + other.valid,
            self.files + other.files,
            self.rows + other.rows,
            self.examples | other.examples,
        )


class _Journal:
    """The segments of a journal that have not been read yet."""

    def __init__(self, spark: Spark, journal: str, since: datetime) -> None:
        self._spark = spark
        self._journal = journal
        self._since = since
        self._seen: set[str] = set()

    def read(self, table: Table, query: str) -> Reading | None:
        """Read the new segments of a table. None if there are none."""
        new = [each for each in segments(self._journal, table.name) if self._is_new(each)]
        if not new:
            return None
        self._seen.update(each.path for each in new)
        until = datetime.now(UTC) + _CLOCK_SKEW
        reader = partial(read, table, query, round(until.timestamp() * 1e6))
        tasks = dealt(self._spark, {each.path: each.size for each in new})
        return reduce(Reading.__add__, tasks.flatMap(reader).collect())

    def _is_new(self, segment: Segment) -> bool:
        return segment.modified >= self._since and segment.path not in self._seen


def watched(
    spark: Spark,
    journal: str,
    monitor: Monitor,
    *,
    window_ms: int,
    lateness_ms: int,
    every_ms: int | None,
    since_ms: int,
) -> Generator[Notice, None, None]:
    """Yield notices about the journal as it grows, until the generator is closed.

    Begins with segments that were changed in the last `since_ms`, and looks for new ones each `every_ms`.
    Without `every_ms` it ends when all existing segments have been read. Raises PipelineError if this is no
    journal.
    """
    unread = _Journal(spark, journal, datetime.now(UTC) - timedelta(milliseconds=since_ms))
    windows = Windows(1000 * window_ms)
    latest = time.monotonic()
    while True:
        began = time.monotonic()
        gaps = unread.read(GAPS_TABLE, _GAPS)
        if gaps is not None:
            yield from monitor.record_gaps([Gap(**row) for row in gaps.found.to_pylist()])
            yield from _refused(monitor, gaps)
        operations = unread.read(OPERATIONS_TABLE, windows.query)
        if operations is not None:
            yield from monitor.update(windows.add(operations.found))
            yield from monitor.record_read(operations.valid)
            yield from _refused(monitor, operations)
            windows.close(monitor.closed_until)
        if every_ms is None:
            return
        now = time.monotonic()
        if gaps or operations:
            latest = now
        elif now >= latest + lateness_ms / 1000:
            yield from monitor.open_windows()
        time.sleep(max(0.0, began + every_ms / 1000 - now))


def _refused(monitor: Monitor, reading: Reading) -> Iterator[Notice]:
    if reading.examples:
        yield from monitor.report_rejected(reading.files, reading.rows, min(reading.examples))


def read(table: Table, query: str, until_us: int, paths: Iterable[str]) -> Iterator[Reading]:
    """Read segments. Rows that ended after `until_us` are refused. This function runs in the workers."""
    nothing = select(query, SCHEMAS[table.name].empty_table())
    for path in paths:
        source = text_of(path)
        try:
            rows = rows_in(content_of(path), table)
        except FileNotFoundError:
            # It was deleted after it was listed.
            yield Reading(nothing, 0)
        except UnreadableError as error:
            yield Reading(nothing, 0, files=1, examples=frozenset([f"{error} ({source})"]))
        else:
            why = reasons(rows, table)
            valid = rows.filter(pc.is_null(why))
            kept = select(f"SELECT * FROM rows WHERE {_ENDS[table]} <= {until_us}", valid)
            found = {*pc.unique(why.drop_null()).to_pylist(), *([_FUTURE] * (kept.num_rows < valid.num_rows))}
            yield Reading(
                select(query, kept),
                kept.num_rows,
                rows=rows.num_rows - kept.num_rows,
                examples=frozenset(f"{reason} ({source})" for reason in found),
            )
