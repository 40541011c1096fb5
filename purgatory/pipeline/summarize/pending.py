"""The number of pending operations over time."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.transforms.instants import MINUTE_US

_SERIES: Final = ("purgatory", "kind")


def pending(changes: pa.Table, coverage: Coverage) -> pa.Table:
    """One row for each minute in which an operation began or ended, of what the part `CHANGES` has found.

    Columns: the maximum ``pending_max``; the average ``pending_mean`` over the time of the minute that the
    journal covers, which is the time that operations were pending in it, divided by that time; and the number
    at its end ``pending_last``. In a minute without a row the number is constant.
    """
    rows = changes.sort_by([(name, "ascending") for name in (*_SERIES, "minute_us")])
    minute, first, net, most, area = (
        rows[name].to_numpy() for name in ("minute_us", "first_us", "net", "most", "area_us")
    )
    # Each operation that begins also ends, so each series ends with 0, and the next may go on from there.
    after = np.cumsum(net)
    before = after - net
    # The number before the first change counts if the minute did not begin with this change.
    highest = np.where(first > minute, np.maximum(before, before + most), before + most)
    return pa.table(
        {
            "minute": rows["minute_us"].cast(pa.timestamp("us", "UTC")),
            **{name: rows[name] for name in _SERIES},
            "pending_max": highest,
            "pending_mean": (before * MINUTE_US + area) / coverage.of_minute(minute),
            "pending_last": after,
        }
    )
