"""The minutes in which a journal is incomplete."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatory.journal.schema import GAPS
from purgatory.pipeline.exchange import Part
from purgatory.pipeline.transforms.instants import MINUTE_US

_LOST: Final = ("lost_operations", "lost_checks")


def _by_minute(gaps: pa.Table) -> pa.Table:
    """One row for each gap and each minute that the gap overlaps."""
    first, last = (gaps[name].cast(pa.int64()).to_numpy() // MINUTE_US for name in ("began", "ended"))
    minutes = last - first + 1
    gap = np.repeat(np.arange(len(minutes)), minutes)
    # The number of minutes of the same gap that come before.
    before = np.arange(len(gap)) - (np.cumsum(minutes) - minutes)[gap]
    lost = gaps.select(["node", *_LOST]).take(pa.array(gap))
    return lost.append_column("minute_us", pa.array((first[gap] + before) * MINUTE_US))


def _merged(lost: pa.Table) -> pa.Table:
    sums = [(name, "sum") for name in _LOST]
    by_minute = lost.sort_by("node").group_by("minute_us", use_threads=False)
    merged = by_minute.aggregate([("node", "distinct"), *sums])
    return pa.table(
        {
            "minute": merged["minute_us"].cast(pa.timestamp("us", "UTC")),
            "nodes": merged["node_distinct"],
            **{name: merged[f"{name}_sum"] for name in _LOST},
        }
    )


# There is one row for each minute that a gap overlaps, with the sorted names of the ``nodes`` that lost rows.
# ``lost_operations`` and ``lost_checks`` are the sums over all gaps that overlap the minute. They are upper
# bounds, because a gap does not say when its rows were lost.
GAP_MINUTES: Final = Part(
    "gaps", GAPS, ("node", "began", "ended", *_LOST), _by_minute, group=("minute_us",), merge=_merged
)


def mark_gaps(by_minute: pa.Table, gap_minutes: pa.Table) -> pa.Table:
    """Add a column ``incomplete``: whether a gap overlaps the minute of the row."""
    overlapped = pc.is_in(by_minute["minute"], gap_minutes["minute"].combine_chunks())
    return by_minute.append_column("incomplete", overlapped)
