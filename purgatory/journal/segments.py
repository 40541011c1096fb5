"""The directory of a journal, as the one thread that writes to it sees it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from purgatory.journal.gap import Gap, Losses
from purgatory.journal.rows import CHECK_WIDTH, OPERATION_WIDTH, Columns
from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS

T = TypeVar("T")

# Whose values are told by number. Of what seldom repeats a dictionary takes twice the time, and more room.
FEW_VALUES: Final = ["node", "purgatory", "kind", "outcome"]

_logger: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Batch:
    """What was noted down between two rotations: flat rows (see `rows`), and what got lost meanwhile."""

    operations: list[Any] = field(default_factory=list)
    checks: list[Any] = field(default_factory=list)
    gap: Gap | None = None

    def __len__(self) -> int:
        """The rows in it."""
        return len(self.operations) // OPERATION_WIDTH + len(self.checks) // CHECK_WIDTH


class Segments:
    """Writes batches, each as a segment for each table that it has rows of.

    A segment is written beside its place, flushed to the disk, and renamed: what has its name is whole. When
    that fails, whatever the reason, its rows become part of a gap, which is written as soon as writing works;
    the log says once when that begins, and once when it is over.
    """

    def __init__(self, directory: Path, node: str, epoch: float, run: int) -> None:
        self._directory = directory
        self._columns = Columns(node, epoch, run)
        # Sorted by time, and no other writer's.
        self._prefix = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{run:08x}"
        self._written = 0
        # All that could not be written, whether there is a gap row for it or not; read by the loop.
        self.lost = Losses()
        # What no gap row has been written for.
        self._missing: Gap | None = None
        self._failing = False
        # Whether that has been said.
        self._names_at_risk = False

    def open(self) -> None:
        """Make the directory. Raises OSError where that cannot be."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for table in (OPERATIONS, CHECKS, GAPS):
            (self._directory / table).mkdir(exist_ok=True)
        # With the first table pyarrow loads half a second's worth of modules, which better nobody waits for.
        pq.write_table(self._columns.gap(Gap(0, 0)), pa.BufferOutputStream(), compression="zstd")

    def write(self, batch: Batch) -> None:
        """Write what the batch has. Raises nothing that is an Exception."""
        errors: list[Exception] = []
        if batch.gap is not None:
            self._missing = batch.gap | self._missing
        if batch.operations:
            stays = batch.operations[3::OPERATION_WIDTH]
            lost = Gap(stays[0].ended, stays[-1].ended, operations=len(stays))
            failed = self._write_or_lose(OPERATIONS, self._columns.operations, batch.operations, lost)
            self.lost.operations += lost.operations if failed else 0
            errors += failed
        if batch.checks:
            moments = batch.checks[2::CHECK_WIDTH]
            lost = Gap(moments[0], moments[-1], checks=len(moments))
            failed = self._write_or_lose(CHECKS, self._columns.checks, batch.checks, lost)
            self.lost.checks += lost.checks if failed else 0
            errors += failed
        if self._missing is not None:
            missing, self._missing = self._missing, None
            errors += self._write_or_lose(GAPS, self._columns.gap, missing, missing)
        self._tell(errors)

    def close(self) -> None:
        """Say what is missing and is not in the journal either."""
        if self._missing is not None:
            _logger.error(
                "the journal in %s ends without %d operations and %d checks, and without a word about it",
                self._directory,
                self._missing.operations,
                self._missing.checks,
            )

    def _write_or_lose(
        self, table: str, converted: Callable[[T], pa.Table], rows: T, lost: Gap
    ) -> list[Exception]:
        """Write rows of one table; where that fails they are what is `lost`, and why is returned."""
        try:
            self._write(table, converted(rows))
        except Exception as error:
            self._missing = lost | self._missing
            return [error]
        return []

    def _tell(self, errors: list[Exception]) -> None:
        if errors and not self._failing:
            _logger.error(
                "the journal in %s cannot be written, and rows are lost until it can be: %s: %s",
                self._directory,
                type(errors[0]).__name__,
                errors[0],
            )
        elif self._failing and not errors:
            _logger.warning("the journal in %s can be written again", self._directory)
        self._failing = bool(errors)

    def _write(self, table: str, rows: pa.Table) -> None:
        # Not its parents: where the journal's directory has gone, something else may be mounted now.
        folder = self._directory / table
        folder.mkdir(exist_ok=True)
        name = f"{self._prefix}-{self._written:06d}.parquet"
        self._written += 1
        unfinished = folder / f".{name}.unfinished"
        try:
            pq.write_table(rows, unfinished, compression="zstd", use_dictionary=FEW_VALUES)
            _sync(unfinished)
            unfinished.rename(folder / name)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        self._sync_names(folder)

    def _sync_names(self, folder: Path) -> None:
        """Or a crash of the machine could take the new name away. Not every file system can."""
        try:
            _sync(folder)
        except OSError as error:
            if not self._names_at_risk:
                self._names_at_risk = True
                _logger.warning(
                    "the journal in %s cannot sync its directories, so a crash of the machine may take "
                    "its last segments away: %s",
                    self._directory,
                    error,
                )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
