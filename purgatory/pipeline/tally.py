"""The rows of a batch, counted by file and by the reason for which they are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import date
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.listing import Segment


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of segments and of their rows: rows = kept + duplicates + quarantined."""

    files: int = 0
    # Those of the files that could not be read. Their rows are unknown, and not counted.
    unreadable_files: int = 0
    rows: int = 0
    kept: int = 0
    duplicates: int = 0
    quarantined: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class Tally:
    """The rows of a batch, counted by the path of their file."""

    def __init__(self, rows: DataFrame) -> None:
        # How many rows each file says that it has; None if it could not be read.
        self.rows: dict[str, int | None] = {}
        # Why files could not be read.
        self.problems: dict[str, str] = {}
        self.valid: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        # How many rows and files were refused, by reason.
        self.reasons: Counter[str] = Counter()
        # The dates of valid rows.
        self.dates: set[date] = set()
        groups = rows.groupBy("source", "reason").agg(
            F.count("position").alias("rows"),
            F.count_if(F.col("position").isNull()).alias("files"),
            F.max("file_rows").alias("file_rows"),
            F.collect_set("date").alias("dates"),
        )
        for group in groups.collect():
            source, reason = group["source"], group["reason"]
            self.dates.update(group["dates"])
            if group["files"]:
                self.rows[source] = group["file_rows"]
            if reason is None:
                self.valid[source] += group["rows"]
                continue
            self.reasons[reason] += group["rows"] + group["files"]
            if group["files"]:
                self.problems[source] = reason
            else:
                self.refused[source] += group["rows"]
        # The valid rows that are no duplicates.
        self.kept = self.valid

    @property
    def counts(self) -> Counts:
        kept = self.kept.total()
        return Counts(
            files=len(self.rows),
            unreadable_files=len(self.problems),
            rows=sum(filter(None, self.rows.values())),
            kept=kept,
            duplicates=self.valid.total() - kept,
            quarantined=self.refused.total(),
        )

    @property
    def adds_up(self) -> bool:
        counts = self.counts
        return counts.rows == counts.kept + counts.duplicates + counts.quarantined

    def row(self, segment: Segment) -> Mapping[str, Any]:
        """The row of the table of segments; see schemas.SEGMENTS."""
        path = segment.path
        return {
            "name": segment.name,
            "source": path,
            "size": segment.size,
            "modified": segment.modified,
            "rows": self.rows[path],
            "kept": self.kept[path],
            "duplicates": self.valid[path] - self.kept[path],
            "quarantined": self.refused[path],
            "reason": self.problems.get(path),
        }
