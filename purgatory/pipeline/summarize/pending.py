"""The number of pending operations over time."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.transforms.instants import MINUTE_US

_SERIES: Final = ("purgatory", "kind")


def pending(changes: pa.Table, coverage: Coverage) -> pa.Table:
    """One row for each minute in which an operation began or ended. `changes` come from the part `CHANGES`.

    ``pending_max`` is the highest number of pending operations in the minute. ``pending_mean`` is the average
    over the part of the minute that the journal covers. ``pending_last`` is the number at the end of the
    minute. In a minute without a row, the number does not change.
    """
    rows = changes.sort_by([(name, "ascending") for name in (*_SERIES, "minute_us")])
    minute, first, net, most, area = (
        rows[name].to_numpy() for name in ("minute_us", "first_us", "net", "most", "area_us")
    )
    # Each operation that begins also ends. So each series ends with 0, and the sum can go on with the next.
    after = np.cumsum(net)
    before = after - net
    # The number before the first change counts, too, unless this change is at the beginning of the minute.
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
