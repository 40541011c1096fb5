"""The segments in a journal's directory, as the writer's thread writes them."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from purgatory.journal.gap import Gap, Losses
from purgatory.journal.rows import Converter
from purgatory.journal.schema import CHECKS_TABLE, GAPS_TABLE, OPERATIONS_TABLE
from purgatory.journal.table import RecordedRows, RecordedTable

Recorded = TypeVar("Recorded", bound=tuple[Any, ...])

_logger: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Batch:
    """The rows that were recorded between two rotations, and the rows that were lost in that time."""

    operations: RecordedRows
    checks: RecordedRows
    gap: Gap | None = None

    @property
    def rows(self) -> int:
        return self.operations.rows + self.checks.rows


class Segments:
    """Writes batches. Each table for which a batch has rows gets a segment.

    A segment is written under a temporary name, flushed to the disk, and renamed. So a file that has the name
    of a segment is complete. If writing fails, for whatever reason, the rows are lost and become part of a
    gap. The gap is written as soon as writing works again. The log has one line when writing begins to fail,
    and one line when writing works again.
    """

    def __init__(self, directory: Path, node: str, epoch: float, run: int) -> None:
        self._directory = directory
        self._converter = Converter(node, epoch, run)
        # File names sort by time. No two writers use the same names.
        self._prefix = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{run:08x}"
        self._written = 0
        # All rows that could not be written, including the rows that no gap counts yet. The event loop reads
        # this, too.
        self.lost = Losses()
        # The lost rows that no written gap counts yet.
        self._unwritten_gap: Gap | None = None
        self._failing = False
        # Whether the log already has the warning that directories cannot be synced.
        self._warned_of_sync = False

    def open(self) -> None:
        """Make the directories. Raises OSError if that is impossible."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for table in (OPERATIONS_TABLE, CHECKS_TABLE, GAPS_TABLE):
            (self._directory / table.name).mkdir(exist_ok=True)
        # When pyarrow writes its first table, it imports modules for half a second. It does so here, so that
        # the first batch does not wait.
        pq.write_table(self._gap_row(Gap(0, 0)), pa.BufferOutputStream(), compression="zstd")

    def write(self, batch: Batch) -> None:
        """Write a batch. Never raises an Exception."""
        if batch.gap is not None:
            self._unwritten_gap = batch.gap | self._unwritten_gap
        errors = [
            *self._write_or_lose(OPERATIONS_TABLE, batch.operations),
            *self._write_or_lose(CHECKS_TABLE, batch.checks),
            *self._write_gap(),
        ]
        self._log_change(errors)

    def close(self) -> None:
        """Log the lost rows that no written gap counts."""
        if self._unwritten_gap is not None:
            _logger.error(
                "the journal in %s lacks %d operations and %d checks at its end, and no gap records them",
                self._directory,
                self._unwritten_gap.operations,
                self._unwritten_gap.checks,
            )

    def _write_or_lose(self, table: RecordedTable[Recorded], rows: RecordedRows) -> list[Exception]:
        """Write the rows. If that fails, count them as lost, and return the error."""
        if not rows:
            return []
        try:
            self._write(table, self._converter.convert(table, rows))
        except Exception as error:
            began, ended = table.span(rows)
            gap = Gap(began, ended, **{table.name: rows.rows})
            self._unwritten_gap = gap | self._unwritten_gap
            self.lost.operations += gap.operations
            self.lost.checks += gap.checks
            return [error]
        return []

    def _write_gap(self) -> list[Exception]:
        """Write the gap, if there is one. If that fails, keep it for the next time, and return the error."""
        if self._unwritten_gap is not None:
            try:
                self._write(GAPS_TABLE, self._gap_row(self._unwritten_gap))
            except Exception as error:
                return [error]
            self._unwritten_gap = None
        return []

    def _gap_row(self, gap: Gap) -> pa.Table:
        return self._converter.convert(GAPS_TABLE, [getattr(gap, name) for name in GAPS_TABLE.values])

    def _log_change(self, errors: list[Exception]) -> None:
        if errors and not self._failing:
            _logger.error(
                "the journal in %s cannot be written, and rows are lost until writing works again: %s: %s",
                self._directory,
                type(errors[0]).__name__,
                errors[0],
            )
        elif self._failing and not errors:
            _logger.warning("the journal in %s can be written again", self._directory)
        self._failing = bool(errors)

    def _write(self, table: RecordedTable[Recorded], rows: pa.Table) -> None:
        # Parents are not made: if the journal's directory is gone, something else may be mounted there.
        folder = self._directory / table.name
        folder.mkdir(exist_ok=True)
        name = f"{self._prefix}-{self._written:06d}.parquet"
        self._written += 1
        unfinished = folder / f".{name}.unfinished"
        try:
            pq.write_table(rows, unfinished, compression="zstd", use_dictionary=table.dictionary_columns)
            _sync(unfinished)
            unfinished.rename(folder / name)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        self._sync_names(folder)

    def _sync_names(self, folder: Path) -> None:
        """Sync the directory, so that a crash of the machine does not undo the renaming.

        Not every file system supports this. If it does not, the log has one warning.
        """
        try:
            _sync(folder)
        except OSError as error:
            if not self._warned_of_sync:
                self._warned_of_sync = True
                _logger.warning(
                    "the journal in %s cannot sync its directories, so a crash of the machine may remove "
                    "its last segments: %s",
                    self._directory,
                    error,
                )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
