"""The fan-out of checks: how many operations a check of a key tries."""

from __future__ import annotations

from functools import partial
from typing import Final

from purgatory.journal.schema import CHECKS
from purgatory.pipeline.exchange import Part, columns
from purgatory.pipeline.sql import MINUTE_US, select

# Checks that tried about the same number of operations are counted together.
_COUNTED: Final = f"""
SELECT
    start_us(epoch_us(checked), {MINUTE_US}) AS minute_us,
    purgatory, bin(tried) AS about,
    count(*) AS checks, total(tried) AS tried, total(completed) AS completed, max(tried) AS most,
    min(epoch_us(checked)) AS first_us, max(epoch_us(checked)) AS last_us
FROM rows GROUP BY ALL
"""
_MEASURED: Final = """
WITH numbered AS (
    SELECT
        *,
        sum(checks) OVER (PARTITION BY minute_us, purgatory ORDER BY about) AS upto,
        sum(checks) OVER (PARTITION BY minute_us, purgatory) AS number
    FROM rows
)
SELECT
    instant(minute_us) AS minute, purgatory,
    total(checks) AS checks, total(tried) AS tried, total(completed) AS completed,
    quantile(about, upto, number, 0.5) AS tried_p50, quantile(about, upto, number, 0.99) AS tried_p99,
    max(most) AS tried_max, min(first_us) AS first_us, max(last_us) AS last_us
FROM numbered GROUP BY minute_us, purgatory
"""
# There is one row for each minute and purgatory in which a key was checked. ``checks`` is the number of
# checks. ``tried`` and ``completed`` are the numbers of operations that all checks together tried and
# completed. The quantiles are the numbers of operations that one check tried, with the precision of the bins
# of `sql`, and ``tried_max`` is the highest number. ``first_us`` and ``last_us`` are the instants of the
# first and the last check.
FAN_OUT: Final = Part(
    "fan_out",
    CHECKS,
    columns(CHECKS, "purgatory", "checked", "tried", "completed"),
    partial(select, _COUNTED),
    group=("minute_us", "purgatory"),
    merge=partial(select, _MEASURED),
)
