"""The time that a journal covers, and the minutes that it covers in part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatory.pipeline.summarize.groups import Integers
from purgatory.pipeline.transforms.instants import MINUTE_US


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

    def part(self, minute_us: Integers) -> tuple[Integers, Integers]:
        """The beginning and the end of the covered part of the minutes that begin at `minute_us`."""
        return np.maximum(minute_us, self.since_us), np.minimum(minute_us + MINUTE_US, self.until_us)

    def of_minute(self, minute_us: Integers) -> Integers:
        """The microseconds that are covered of the minutes that begin at `minute_us`; at least 1."""
        since, until = self.part(minute_us)
        covered: Integers = np.maximum(until - since, 1)
        return covered

    def mark(self, by_minute: pa.Table) -> pa.Table:
        """Add the covered part of each ``minute``: ``since``, ``until``, and whether it is ``partial``."""
        since, until = self.part(by_minute["minute"].cast(pa.int64()).to_numpy())
        marks = {"since": _instants(since), "until": _instants(until), "partial": until - since < MINUTE_US}
        return pa.table({**{name: by_minute[name] for name in by_minute.column_names}, **marks})


def _instants(microseconds: Integers) -> pa.Array:
    return pa.array(microseconds).cast(pa.timestamp("us", "UTC"))
