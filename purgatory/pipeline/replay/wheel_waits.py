"""The waits of operations on the wheel of their purgatory, and the intervals in which to replay them."""

from __future__ import annotations

from functools import partial
from typing import Final

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.exchange import Part, columns
from purgatory.pipeline.replay.reaper import NEVER
from purgatory.pipeline.sql import select

# The approximate number of waits that begin in an interval.
WAITS_PER_INTERVAL: Final = 20_000

# Each combination of node and purgatory has its own wheel.
WHEEL: Final = ("node", "purgatory")
# The columns of operations that `WAITS` reads.
READS: Final = (*WHEEL, "started", "timeout_us", "waited_us", "lateness_us", "outcome", "tries")

# What to say if no operation was on a wheel.
NO_WAITS: Final = (
    "No recorded operation has waited for its timeout: each operation ended when it was first tried, or has "
    "no timeout. So there is nothing to replay."
)

# One row for each operation that was on a wheel. ``entered_us`` is when the operation was added to the wheel.
# ``deadline_us`` is its deadline. ``left_us`` is when it ended before its deadline, and null if its timeout
# expired. Operations without a timeout, or with a timeout of zero, are on no wheel.
#
# The journal has only the latest timeout of a rescheduled operation. So its time before this timeout is left
# out. If the operation expired, its deadline is known, and its latest timeout began one timeout earlier. If
# it ended otherwise, and had waited for longer than its timeout, its end is used as its deadline.
#
# An operation that ends with its first try is never added to a wheel, but the journal does not say so. Its
# recorded wait is the time of this try. So operations that completed or failed within a millisecond after one
# try are left out. This includes operations that were forced to complete while they waited.
WAITS: Final = """
SELECT node, purgatory, deadline_us - timeout_us AS entered_us, deadline_us,
    if(lateness_us IS NULL, end_us, NULL) AS left_us
FROM (
    SELECT
        *,
        ended_us(started, waited_us) AS end_us,
        coalesce(end_us - lateness_us, greatest(epoch_us(started) + timeout_us, end_us)) AS deadline_us
    FROM rows
    -- A longer timeout is no timeout: 285 years.
    WHERE timeout_us BETWEEN 1 AND 1::BIGINT << 53
        AND NOT (outcome IN ('completed', 'failed') AND tries = 1 AND waited_us < 1_000)
)
WHERE left_us IS NULL OR left_us > entered_us
"""
# When a wait is off the wheel, with any tick up to a given one.
OFF_THE_WHEEL: Final = "coalesce(left_us, deadline_us + {coarsest_us})"

# The waits that begin, and the waits that expire, in each second of each wheel.
_SECONDS: Final = f"""
WITH waits AS (SELECT *, {OFF_THE_WHEEL} AS gone_us FROM ({WAITS})),
moments AS (
    SELECT node, purgatory, entered_us AS at_us, entered_us AS first_us, gone_us, NULL AS expires_us
    FROM waits
    UNION ALL
    SELECT node, purgatory, deadline_us, NULL, NULL, deadline_us FROM waits WHERE left_us IS NULL
)
SELECT node, purgatory, at_us // 1_000_000 AS second,
    count(first_us) AS begun, total(gone_us - first_us) AS pending_us,
    min(first_us) AS first_us, max(gone_us) AS gone_us, min(expires_us) AS expires_us
FROM moments GROUP BY ALL
"""
# With a window over the seconds that follow, each second would sum them up again.
_INTERVALS: Final = f"""
WITH merged AS (
    SELECT node, purgatory, second, total(begun) AS begun, sum(pending_us) AS pending_us,
        min(first_us) AS first_us, max(gone_us) AS gone_us, min(expires_us) AS expires_us
    FROM rows GROUP BY ALL
),
seconds AS (
    SELECT
        *,
        sum(begun) OVER wheel AS recorded,
        coalesce(sum(begun) OVER earlier, 0) AS begun_before,
        -- At a quiet instant, all earlier waits are over.
        if(coalesce(max(gone_us) OVER earlier <= first_us, true), first_us, NULL) AS quiet_us,
        sum(pending_us) OVER wheel / (max(gone_us) OVER wheel - min(first_us) OVER wheel) AS pending
    FROM merged
    WINDOW
        wheel AS (PARTITION BY node, purgatory),
        earlier AS (
            PARTITION BY node, purgatory ORDER BY second ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
newest AS (
    SELECT
        *,
        begun_before - min(begun_before) OVER (PARTITION BY node, purgatory) AS begun_between,
        -- The warm-up of an interval has at most a quarter as many waits as begin in the interval.
        floor(begun_between / greatest({{size}}, 4 * pending)) AS number
    FROM seconds WHERE recorded - begun_before - begun < {{newest}}
),
intervals AS (
    SELECT node, purgatory, recorded,
        if(number = 0, min(second) * 1_000_000, min(coalesce(quiet_us, expires_us))) AS since_us
    FROM newest GROUP BY node, purgatory, recorded, number
)
SELECT node, purgatory, recorded::BIGINT AS recorded, since_us,
    lead(since_us, 1, {NEVER}) OVER (PARTITION BY node, purgatory ORDER BY since_us) AS until_us
FROM intervals WHERE since_us IS NOT NULL
"""


def intervals(*, coarsest_us: int, newest: int = NEVER, size: int = WAITS_PER_INTERVAL) -> Part:
    """Partition the time of each wheel into intervals in which about `size` waits begin.

    There is one row for each interval, from ``since_us`` until before ``until_us``. The next interval begins
    at ``until_us``; the last interval has no end. With `newest`, the intervals cover the last seconds, as few
    seconds as have at least `newest` waits that begin in them. ``recorded`` is the number of all waits of the
    wheel.

    The first interval begins with a second. The other intervals begin at instants at which the state of the
    reaper's alarm is known (see `reaper.ReplayInterval`): when a wait expires, or when a wait begins and all
    earlier waits are over, even with a tick of `coarsest_us`. Without such an instant, an interval continues.
    If more than a quarter of `size` waits are pending on average, intervals are longer. Otherwise the warm-up
    would be most of the work.
    """
    return Part(
        "intervals",
        OPERATIONS,
        columns(OPERATIONS, *READS),
        partial(select, _SECONDS.format(coarsest_us=coarsest_us)),
        group=WHEEL,
        merge=partial(select, _INTERVALS.format(newest=newest, size=size)),
    )
