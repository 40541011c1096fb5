"""The counts of segments that were read, and of their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass

from purgatory.pipeline.intake import ReadSegment


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of segments and of their rows: rows = kept + duplicates + quarantined."""

    files: int = 0
    # The files that could not be read. The number of their rows is unknown, and is not in `rows`.
    unreadable_files: int = 0
    rows: int = 0
    kept: int = 0
    duplicates: int = 0
    quarantined: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @classmethod
    def of(cls, segments: Iterable[ReadSegment]) -> Counts:
        counts = cls()
        for each in segments:
            counts += cls(
                files=1,
                unreadable_files=each.problem is not None,
                rows=each.rows or 0,
                kept=each.kept,
                duplicates=each.duplicates,
                quarantined=each.quarantined,
            )
        return counts
