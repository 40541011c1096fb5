"""The time that a journal covers, and the minutes that it covers in part."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.instants import MINUTE_US


@dataclass(frozen=True, slots=True)
class Coverage:
    """The time from the first event of a journal to the last, in microseconds since 1970.

    An event is the start or the end of an operation, or a check of a key.
    """

    since_us: int
    until_us: int

    @classmethod
    def of(cls, *events: DataFrame) -> Coverage:
        """The time that rows with ``first_us`` and ``last_us`` span. Without rows it has no length."""
        spans = [frame.agg(F.min("first_us"), F.max("last_us")).first() for frame in events]
        known = [span for span in spans if span is not None and span[0] is not None]
        return cls(
            min((since for since, _ in known), default=0), max((until for _, until in known), default=0)
        )

    def part(self, since_us: Column, until_us: Column) -> tuple[Column, Column]:
        """The beginning and the end of the covered part of an interval."""
        return F.greatest(since_us, F.lit(self.since_us)), F.least(until_us, F.lit(self.until_us))

    def of_minute(self, minute_us: Column) -> Column:
        """For how many microseconds the minute that begins then is covered; at least 1."""
        since, until = self.part(minute_us, minute_us + MINUTE_US)
        return F.greatest(until - since, F.lit(1))

    def mark(self, by_minute: DataFrame) -> DataFrame:
        """Add the covered part of each ``minute``: ``since``, ``until``, and whether it is ``partial``."""
        minute_us = F.unix_micros("minute")
        since, until = self.part(minute_us, minute_us + MINUTE_US)
        return by_minute.withColumns(
            {
                "since": F.timestamp_micros(since),
                "until": F.timestamp_micros(until),
                "partial": until - since < MINUTE_US,
            }
        )
