"""What other timeouts would do, by the curves of `survival`."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from purgatory.pipeline.advise.survival import Z
from purgatory.pipeline.sql import select

_EFFECTS: Final = f"""
WITH points AS (
    SELECT
        rows.*, timeout_us,
        waited_us <= timeout_us AS reached,
        -- Expired operations were at risk, so the curve is above zero there.
        waited_us < timeout_us AND expired > 0 AS reopens,
        expired / survival AS per_survivor
    FROM rows JOIN (SELECT DISTINCT * FROM timeouts) AS asked
        ON rows.purgatory = asked.purgatory AND rows.kind = asked.kind
        AND rows.key IS NOT DISTINCT FROM asked.key
),
found AS (
    SELECT
        purgatory, kind, key, timeout_us,
        arg_max(points, waited_us) FILTER (reached) AS last,
        -- The curve falls, so an upper bound holds for all longer waits, too.
        arg_max(survival_high, waited_us) FILTER (reached AND survival_high IS NOT NULL) AS bound,
        timeout_us <= max(waited_us) AS followed,
        coalesce(sum(completed::DOUBLE) FILTER (NOT reached), 0) AS cut_off,
        coalesce(sum(ended * (waited_us - timeout_us)::DOUBLE) FILTER (NOT reached), 0) AS spared_us,
        coalesce(sum(expired::DOUBLE) FILTER (reopens), 0) AS reopened,
        coalesce(sum(per_survivor) FILTER (reopens), 0) AS survivors,
        coalesce(sum(per_survivor * mean_wait_us) FILTER (reopens), 0) AS survivors_waited_us,
        min(log_variance) FILTER (reopens) AS first_variance
    FROM points GROUP BY purgatory, kind, key, timeout_us
),
estimated AS (
    SELECT
        *,
        followed OR reopened = 0 AS known,
        coalesce(last.survival, 1) AS survival,
        -- Where the curve is zero, all n operations at risk have completed at once. If each completes with a
        -- probability below the n-th root of 2.5 %, the probability of this is below 2.5 %. So 1 minus this
        -- root is the upper bound of the curve.
        if(last.survival = 0, 1 - pow(0.025, 1 / last.at_risk), NULL) AS of_zero,
        coalesce(least(bound, of_zero), 1) AS highest,
        if(followed, coalesce(last.survival_low, last.survival, 1), 0) AS lowest,
        coalesce(last.mean_wait_us, 0)
            + (timeout_us - coalesce(last.waited_us, 0)) * coalesce(last.survival, 1) AS mean_wait_us,
        -- The number of continued operations that would still not have completed. Its uncertainty grows with
        -- the distance from the wait of the expired operation to this timeout. So all operations get the
        -- interval of the operations that expired first.
        coalesce(last.survival, 1) * survivors AS remaining,
        last.log_variance - first_variance AS variance,
        exp({Z} * sqrt(if(variance < 0, 0, variance))) AS factor,
        least(coalesce(remaining * factor, highest * survivors), reopened) AS most_remaining
    FROM found
)
SELECT
    purgatory, kind, key, timeout_us,
    1 - survival AS completes, 1 - highest AS completes_low, 1 - lowest AS completes_high,
    if(known, reopened - remaining - cut_off, NULL) AS more_completed,
    if(known, reopened - most_remaining - cut_off, NULL) AS more_completed_low,
    if(known, reopened - coalesce(remaining / factor, remaining) - cut_off, NULL) AS more_completed_high,
    if(known, spared_us - mean_wait_us * survivors + survivors_waited_us, NULL) AS waited_less_us
FROM estimated
"""


def effects(timeouts: pa.Table, curves: pa.Table) -> pa.Table:
    """Find out what each of the given timeouts would do.

    `timeouts` has ``purgatory``, ``kind``, ``key`` and ``timeout_us``.

    ``completes``, ``completes_low``, ``completes_high``
        the share that completes within the timeout, and its 95 % confidence interval. The upper bound is 1 if
        no operation waited for this long
    ``more_completed``, ``more_completed_low``, ``more_completed_high``
        how many more of the recorded operations would have completed, and the 95 % confidence interval of
        this number; negative if fewer
    ``waited_less_us``
        how many microseconds less all operations together would have waited; negative if more

    Operations that waited for longer than the timeout would have ended at the timeout; that is known.
    Operations that expired earlier would have continued. The curve says how many of them would have completed
    by the timeout, and when. The interval says how certain this number is. All other operations stay as they
    were. Nothing is extrapolated: if some operations would have continued beyond the longest wait, the effect
    is null.
    """
    return select(_EFFECTS, curves, timeouts=timeouts)
