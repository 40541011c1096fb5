"""The number of pending operations over time, exact to the microsecond."""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.exchange import Part, columns
from purgatory.pipeline.sql import MINUTE_US, select
from purgatory.pipeline.summarize.coverage import Coverage

# The changes in each minute, packed. A change is a number: twice the microseconds since its minute began, and
# 1 more if an operation began. It takes four bytes.
_PACKED: Final = f"""
SELECT
    purgatory, kind, start_us(at_us, {MINUTE_US}) AS minute_us,
    list((2 * (at_us % {MINUTE_US}) + began)::INTEGER) AS changes
FROM (
    SELECT purgatory, kind, epoch_us(started) AS at_us, 1 AS began FROM rows
    UNION ALL
    SELECT purgatory, kind, ended_us(started, waited_us), 0 FROM rows
)
GROUP BY ALL
"""
_SWEPT: Final = f"""
WITH changes AS (
    SELECT purgatory, kind, minute_us, unnest(changes) AS packed FROM rows
),
-- Operations that begin and end at one instant are not pending together.
instants AS (
    SELECT purgatory, kind, minute_us, packed >> 1 AS after_us, sum(2 * (packed & 1) - 1) AS net
    FROM changes GROUP BY ALL
),
summed AS (
    SELECT *, sum(net) OVER (PARTITION BY purgatory, kind, minute_us ORDER BY after_us) AS since FROM instants
)
SELECT
    purgatory, kind, minute_us,
    minute_us + min(after_us) AS first_us, minute_us + max(after_us) AS last_us,
    total(net) AS net, max(since)::BIGINT AS most, total(net * ({MINUTE_US} - after_us)) AS area_us
FROM summed GROUP BY purgatory, kind, minute_us
"""
# How the number of pending operations changed in each minute. There is one row for each purgatory, kind and
# minute in which an operation began or ended. ``first_us`` and ``last_us`` are the instants of the first and
# the last change. ``net`` is the sum of the changes. ``most`` is the highest sum of changes since the minute
# began. ``area_us`` is the sum of the changes, each multiplied by the rest of the minute.
CHANGES: Final = Part(
    "changes",
    OPERATIONS,
    columns(OPERATIONS, "purgatory", "kind", "started", "waited_us"),
    partial(select, _PACKED),
    group=("purgatory", "kind", "minute_us"),
    merge=partial(select, _SWEPT),
)

_PENDING: Final = f"""
WITH summed AS (
    SELECT *, (sum(net) OVER (PARTITION BY purgatory, kind ORDER BY minute_us))::BIGINT AS after FROM rows
)
SELECT
    instant(minute_us) AS minute, purgatory, kind,
    -- The number before the first change counts, too, unless this change is at the beginning of the minute.
    greatest(after - net + most, if(first_us > minute_us, after - net, NULL)) AS pending_max,
    ((after - net) * {MINUTE_US} + area_us) / {{covered_us}} AS pending_mean,
    after AS pending_last
FROM summed
"""


def pending(changes: pa.Table, coverage: Coverage) -> pa.Table:
    """One row for each minute in which an operation began or ended. `changes` come from the part `CHANGES`.

    ``pending_max`` is the highest number of pending operations in the minute. ``pending_mean`` is the average
    over the part of the minute that the journal covers. ``pending_last`` is the number at the end of the
    minute. In a minute without a row, the number does not change.
    """
    return select(_PENDING.format(covered_us=coverage.of_minute("minute_us")), changes)
