"""Downsampling: summaries and curves with no more rows than a screen can show.

Summaries are shown by steps of time: the longer the time, the longer the steps. A step has a beginning
(``since``) and an end (``until``). Steps are whole minutes, aligned to 1970. The first and the last step are
shorter if the journal covers only a part of them. The rows of a curve that a chart cannot show are left out.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from purgatory.observer import OUTCOMES
from purgatory.pipeline.sql import MINUTE_US, select
from purgatory.pipeline.summarize.coverage import Coverage

# About as many steps as fit on a screen.
MAX_STEPS: Final = 500

_ROUND: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 720, 1440)

# The number of cells in the height of the chart, for the share that still waits.
HEIGHT: Final = 300
# The number of cells per decade, for the logarithm of this share and of the waits. A curve keeps about 1,000
# points, even if it has a hundred million operations and waits from a microsecond to hours.
DECADE: Final = 40

_WAITS: Final = ("wait_p50_us", "wait_p90_us", "wait_p99_us", "wait_p999_us", "lateness_p99_us")

# The first row in each cell, and the last row of each curve. The share has no logarithm where it is zero.
_DOWNSAMPLED: Final = f"""
SELECT * FROM rows
QUALIFY row_number() OVER (
    PARTITION BY
        purgatory, kind, key,
        floor(survival * {HEIGHT}),
        floor(log10(nullif(survival, 0)) * {DECADE}),
        floor(log10(greatest(waited_us, 1)) * {DECADE}),
        at_risk = ended
    ORDER BY waited_us
) = 1
"""


def minutes_per_step(minutes: int) -> int:
    """The minutes in a step: a round number, or whole days. So `minutes` make at most MAX_STEPS steps."""
    least = -(-minutes // MAX_STEPS)
    day = _ROUND[-1]
    return next((each for each in _ROUND if each >= least), -(-least // day) * day)


def minutes_in_steps(minutes: pa.Table, step: int, coverage: Coverage) -> pa.Table:
    """The table of `summarize.minutes` by steps of `step` minutes.

    Counts are added up. The quantile of a step is the highest quantile of its minutes, because quantiles
    cannot be merged.
    """
    # A table of an older version lacks the outcomes that came later. It has no such operations.
    outcomes = (f"total(coalesce({each}, 0)) AS {each}" for each in OUTCOMES)
    waits = (f"max({each}) AS {each}" for each in _WAITS)
    return _by_step(
        f"""
        purgatory, kind, total(operations) AS operations, {", ".join((*outcomes, *waits))},
        sum(tries_per_operation * operations) / sum(operations) AS tries_per_operation
        """,
        minutes,
        step,
        coverage,
    )


def fan_out_in_steps(fan_out: pa.Table, step: int, coverage: Coverage) -> pa.Table:
    """The table of `summarize.fan_out` by steps, in the same way."""
    return _by_step(
        """
        purgatory, total(checks) AS checks, total(tried) AS tried, total(completed) AS completed,
        max(tried_p50) AS tried_p50, max(tried_p99) AS tried_p99, max(tried_max) AS tried_max
        """,
        fan_out,
        step,
        coverage,
    )


def gaps_in_steps(gaps: pa.Table, step: int) -> pa.Table:
    """The steps with incomplete minutes, and the number of these minutes. All steps have the same length."""
    step_us = step * MINUTE_US
    query = f"""
    SELECT instant(step_us) AS since, instant(step_us + {step_us}) AS until, count(*) AS incomplete_minutes
    FROM (SELECT start_us(epoch_us(minute), {step_us}) AS step_us FROM rows) GROUP BY step_us
    """
    return select(query, gaps)


def pending_in_steps(pending: pa.Table, step: int, coverage: Coverage) -> pa.Table:
    """The highest number of pending operations in each step (``pending_max``), and the average over time
    (``pending_mean``).

    Includes the steps without a change, which have no row in the table by minutes.
    """
    step_us = step * MINUTE_US
    query = f"""
    WITH minutes AS (
        SELECT
            *,
            epoch_us(since) AS since_us,
            epoch_us(until) AS until_us,
            lead(epoch_us(since), 1, epoch_us(until)) OVER (
                PARTITION BY purgatory, kind ORDER BY minute
            ) AS next_us
        FROM rows
    ),
    -- The minutes with a change, and the times without a change after them.
    intervals AS (
        SELECT purgatory, kind, since_us AS from_us, until_us AS to_us,
            pending_max AS most, pending_mean AS mean
        FROM minutes
        UNION ALL
        SELECT purgatory, kind, until_us, next_us, pending_last, pending_last FROM minutes
    ),
    parts AS (
        SELECT
            *,
            {step_us} * unnest(range(from_us // {step_us}, (to_us - 1) // {step_us} + 1)) AS step_us,
            least(to_us, step_us + {step_us}) - greatest(from_us, step_us) AS part_us
        FROM intervals WHERE from_us < to_us
    )
    SELECT
        {_covered(step_us, coverage)}, purgatory, kind,
        max(most) AS pending_max,
        sum(mean * part_us) / sum(part_us) AS pending_mean
    FROM parts GROUP BY step_us, purgatory, kind
    """
    return select(query, pending)


def downsampled(curves: pa.Table) -> pa.Table:
    """Select the rows of `survival.curves` that suffice to draw the share, or its logarithm, over log time.

    Keeps the first row in each cell of a grid, and the last row of each curve. A dropped row is in the same
    cell as the last kept row before it.
    """
    return select(_DOWNSAMPLED, curves)


def _by_step(measures: str, by_minute: pa.Table, step: int, coverage: Coverage) -> pa.Table:
    step_us = step * MINUTE_US
    query = f"""
    SELECT {_covered(step_us, coverage)}, {measures}
    FROM (SELECT *, start_us(epoch_us(minute), {step_us}) AS step_us FROM rows) GROUP BY ALL
    """
    return select(query, by_minute)


def _covered(step_us: int, coverage: Coverage) -> str:
    """The part of a step that the journal covers."""
    since, until = coverage.since("step_us"), coverage.until("step_us", step_us)
    return f"instant({since}) AS since, instant({until}) AS until"
