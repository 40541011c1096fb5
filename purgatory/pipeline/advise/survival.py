"""The Kaplan-Meier estimate of how long operations take to complete, if nothing ends them before.

A wait until completion is a survival time. The wait of an operation that expired is right-censored: the
operation would have waited longer, but it is unknown how much longer. The wait of a cancelled operation is
censored, too. So is the wait of a failed operation: its hook raised, which says nothing about when its
condition would have held. Long waits are censored most. So every percentile is too short if censored waits
are left out, and also if they are counted as completed.

Censoring must be independent of the wait itself. This is true of timeouts, and of callers that leave for
other reasons. It is not true of callers that leave because they see that the wait will be long.

Source: Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, 1958.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist
from typing import Final

import pyarrow as pa

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.advise.strata import STRATIFIED, STRATUM
from purgatory.pipeline.exchange import Part, columns
from purgatory.pipeline.sql import select

# The curve is a product of floats, with an error below this. A share counts as reached if the curve is this
# close to it.
EXACTNESS: Final = 1e-9

# The bounds of a 95 % interval are this many standard errors from the estimate.
Z: Final = NormalDist().inv_cdf(0.975)

# The curve has settled when only this share of the operations that complete has not completed yet.
UNSETTLED: Final = 0.001

_COUNTED: Final = f"""
SELECT
    purgatory, kind, key, waited_us, count(*) AS ended,
    count(*) FILTER (outcome = 'completed') AS completed,
    count(*) FILTER (outcome = 'expired' AND lateness_us IS NOT NULL) AS expired
FROM ({STRATIFIED}) GROUP BY ALL
"""
_CURVES: Final = f"""
WITH ends AS (
    SELECT purgatory, kind, key, waited_us,
        total(ended) AS ended, total(completed) AS completed, total(expired) AS expired
    FROM rows GROUP BY ALL
),
counted AS (
    SELECT
        *,
        (sum(ended) OVER (PARTITION BY purgatory, kind, key ORDER BY waited_us DESC))::BIGINT AS at_risk,
        (sum(completed) OVER waits)::BIGINT AS completed_running
    FROM ends WINDOW waits AS (PARTITION BY purgatory, kind, key ORDER BY waited_us)
),
estimated AS (
    SELECT
        *,
        product((at_risk - completed) / at_risk) OVER waits AS survival,
        sum(completed / at_risk / nullif(at_risk - completed, 0)) OVER waits AS variance
    FROM counted WINDOW waits AS (PARTITION BY purgatory, kind, key ORDER BY waited_us)
),
bounded AS (
    SELECT
        *,
        {Z} * sqrt(coalesce(variance, 0)) AS deviations,
        -- Null where no operation has completed yet, and where all have.
        nullif(ln(nullif(survival, 0)), 0) AS log,
        (waited_us - lag(waited_us, 1, 0) OVER waits) * lag(survival, 1, 1.0) OVER waits AS area
    FROM estimated WINDOW waits AS (PARTITION BY purgatory, kind, key ORDER BY waited_us)
)
SELECT
    purgatory, kind, key, waited_us, at_risk, ended, completed, expired, completed_running, survival,
    if(survival > 0, coalesce(variance, 0), NULL) AS log_variance,
    if(survival > 0, coalesce(pow(survival, exp(-deviations / log)), 1), NULL) AS survival_low,
    if(survival > 0, coalesce(pow(survival, exp(deviations / log)), 1), NULL) AS survival_high,
    sum(area) OVER (PARTITION BY purgatory, kind, key ORDER BY waited_us) AS mean_wait_us
FROM bounded
"""


def curves(hot: pa.Table, keep: Callable[[pa.Table], pa.Table]) -> Part:
    """Estimate the share that would have waited longer, for each stratum and each wait that occurred.

    `hot` has the hot keys: ``purgatory`` and ``key``. A worker gives `keep` whole curves, and gets the result
    of the part.

    ``ended``, ``completed``, ``expired``
        the numbers of operations that ended at this wait with any outcome, that completed, and that expired
        by their timeout. Operations that expired because their purgatory closed are not in ``expired``
    ``at_risk``
        the number of operations that waited at least this long
    ``survival``
        the share that would not have completed by this wait
    ``survival_low``, ``survival_high``
        the 95 % confidence interval of ``survival``, by Greenwood's variance on the scale of
        log(-log(survival)), which stays between 0 and 1 and holds for small samples
    ``log_variance``
        the variance of the logarithm of ``survival``, by Greenwood's formula
    ``mean_wait_us``
        the average wait of an operation if this wait were its timeout: the area under the curve
    ``completed_running``
        the number of operations that completed by this wait

    Where the curve is zero, Greenwood's formula is undefined, and the bounds and the variance are null.
    """
    return Part(
        "curves",
        OPERATIONS,
        columns(OPERATIONS, "purgatory", "kind", "keys", "waited_us", "outcome", "lateness_us"),
        partial(select, _COUNTED, hot=hot),
        group=STRATUM,
        merge=lambda counted: keep(estimated(counted)),
    )


def estimated(counted: pa.Table) -> pa.Table:
    """The curves of operations that are counted by their stratum and wait."""
    return select(_CURVES, counted)


def timeouts(shares: Sequence[float], curves: pa.Table) -> pa.Table:
    """Find the timeouts by which the given shares would complete, on each curve.

    ``operations``, ``waited_in_all_us``, ``followed_us``, ``known_share``
        the number of operations, their waits added up, the longest wait, and the share that completes within
        the longest wait
    ``settled_us``
        the wait by which the curve has settled: with a confidence of 97.5 %, at most UNSETTLED of the
        operations that complete within the longest wait complete later. Null if fewer than 3,921
        operations have completed, because then the wait is not known
    ``timeout_us``, ``timeout_low_us``, ``timeout_high_us``
        the timeout and its confidence interval, in microseconds. Null if the curve ends before it reaches the
        share: the timeout is not identifiable beyond ``followed_us``
    ``naive_us``
        the percentile of completed operations, for comparison. It is too short, because it ignores censored
        operations
    """
    return select(_TIMEOUTS.format(shares=list(shares)), curves)


# A number k from a Poisson distribution has the upper bound (sqrt(k + 1) + z / 2) squared, to within 7 %. So
# `late` is the recorded share of late completions up to which the true share is at most UNSETTLED. It is null
# if there are too few completions.
_TIMEOUTS: Final = f"""
WITH strata AS (
    SELECT
        purgatory, kind, key, total(ended) AS operations,
        total(ended::HUGEINT * waited_us) AS waited_in_all_us, max(waited_us) AS followed_us,
        1 - min(survival) AS known_share, total(completed) AS completions,
        if(
            completions * {UNSETTLED} >= {(1 + Z / 2) ** 2},
            (pow(sqrt(completions * {UNSETTLED}) - {Z / 2}, 2) - 1) / completions,
            NULL
        ) AS late
    FROM rows GROUP BY purgatory, kind, key
),
points AS (
    SELECT rows.*, strata.* EXCLUDE (purgatory, kind, key), unnest({{shares}}::DOUBLE[]) AS share
    FROM rows JOIN strata ON rows.purgatory = strata.purgatory AND rows.kind = strata.kind
        AND rows.key IS NOT DISTINCT FROM strata.key
)
SELECT
    purgatory, kind, key, operations, waited_in_all_us, followed_us, known_share,
    min(waited_us) FILTER (1 - survival >= known_share * (1 - late) - {EXACTNESS}) AS settled_us,
    share,
    min(waited_us) FILTER (survival <= 1 - share + {EXACTNESS}) AS timeout_us,
    min(waited_us) FILTER (coalesce(survival_low, survival) <= 1 - share + {EXACTNESS}) AS timeout_low_us,
    min(waited_us) FILTER (survival_high <= 1 - share + {EXACTNESS}) AS timeout_high_us,
    min(waited_us) FILTER (
        completed > 0 AND completed_running >= completions * (share - {EXACTNESS})
    ) AS naive_us
FROM points GROUP BY ALL
"""
