"""The minutes in which a journal is incomplete."""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa

from purgatory.journal.schema import GAPS
from purgatory.pipeline.exchange import Part, columns
from purgatory.pipeline.sql import MINUTE_US, select

# One row for each gap and each minute that the gap overlaps.
_BY_MINUTE: Final = f"""
SELECT
    node, lost_operations, lost_checks,
    {MINUTE_US} * unnest(
        range(epoch_us(began) // {MINUTE_US}, epoch_us(ended) // {MINUTE_US} + 1)
    ) AS minute_us
FROM rows
"""
_MERGED: Final = """
SELECT
    instant(minute_us) AS minute, list_sort(list(DISTINCT node)) AS nodes,
    total(lost_operations) AS lost_operations, total(lost_checks) AS lost_checks
FROM rows GROUP BY minute_us
"""
# There is one row for each minute that a gap overlaps, with the sorted names of the ``nodes`` that lost rows.
# ``lost_operations`` and ``lost_checks`` are the sums over all gaps that overlap the minute. They are upper
# bounds, because a gap does not say when its rows were lost.
GAP_MINUTES: Final = Part(
    "gaps",
    GAPS,
    columns(GAPS, "node", "began", "ended", "lost_operations", "lost_checks"),
    partial(select, _BY_MINUTE),
    group=("minute_us",),
    merge=partial(select, _MERGED),
)


def mark_gaps(by_minute: pa.Table, gap_minutes: pa.Table) -> pa.Table:
    """Add a column ``incomplete``: whether a gap overlaps the minute of the row."""
    query = "SELECT *, minute IN (SELECT minute FROM gaps) AS incomplete FROM rows"
    return select(query, by_minute, gaps=gap_minutes)
