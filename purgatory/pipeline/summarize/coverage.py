"""The time that a journal covers, and the minutes that it covers in part."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from purgatory.pipeline.sql import MINUTE_US, select


@dataclass(frozen=True, slots=True)
class Coverage:
    """The time from the first event of a journal to the last, in microseconds since 1970.

    An event is the start or the end of an operation, or a check of a key.
    """

    since_us: int
    until_us: int

    @classmethod
    def of(cls, *events: pa.Table) -> Coverage:
        """The time from the first ``first_us`` to the last ``last_us``. Without rows it has no length."""
        known = [rows for rows in events if rows.num_rows]
        return cls(
            min((pc.min(rows["first_us"]).as_py() for rows in known), default=0),
            max((pc.max(rows["last_us"]).as_py() for rows in known), default=0),
        )

    def since(self, start_us: str) -> str:
        """SQL for the beginning of the covered part of the interval that begins at `start_us`."""
        return f"greatest({start_us}, {self.since_us})"

    def until(self, start_us: str, length_us: int) -> str:
        """SQL for the end of the covered part."""
        return f"least({start_us} + {length_us}, {self.until_us})"

    def of_minute(self, minute_us: str) -> str:
        """SQL for the microseconds that are covered of a minute; at least 1."""
        return f"greatest({self.until(minute_us, MINUTE_US)} - {self.since(minute_us)}, 1)"

    def mark(self, by_minute: pa.Table) -> pa.Table:
        """Add the covered part of each ``minute``: ``since``, ``until``, and whether it is ``partial``."""
        since, until = self.since("epoch_us(minute)"), self.until("epoch_us(minute)", MINUTE_US)
        query = f"""
        SELECT *, instant({since}) AS since, instant({until}) AS until,
            {until} - {since} < {MINUTE_US} AS partial
        FROM rows
        """
        return select(query, by_minute)
