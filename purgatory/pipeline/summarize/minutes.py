"""Outcomes, waits, lateness and tries of the operations that ended in each minute."""

from __future__ import annotations

from functools import partial
from typing import Final

from purgatory.journal.schema import OPERATIONS
from purgatory.observer import OUTCOMES
from purgatory.pipeline.exchange import Part, columns
from purgatory.pipeline.sql import MINUTE_US, select

READS: Final = ("purgatory", "kind", "outcome", "started", "waited_us", "lateness_us", "tries")

# The numbers of operations that are alike, and the sums of their tries. A window has a given length.
COUNTED: Final = """
SELECT
    start_us(ended_us(started, waited_us), {length_us}) AS start_us, purgatory, kind, outcome,
    bin(waited_us) AS wait_us, bin(lateness_us) AS late_us,
    count(*) AS operations, total(tries) AS tries, max(ended_us(started, waited_us)) AS latest_us
FROM rows GROUP BY ALL
"""
# The measures of each window. `latest_us` is when its last operation ended.
MEASURED: Final = f"""
WITH counted AS (
    SELECT *, CASE WHEN late_us IS NOT NULL THEN operations END AS lates FROM rows
),
numbered AS (
    SELECT
        *,
        sum(operations) OVER (alike ORDER BY wait_us) AS waits_upto,
        sum(operations) OVER alike AS waits_in_all,
        sum(lates) OVER (alike ORDER BY late_us) AS lates_upto,
        sum(lates) OVER alike AS lates_in_all
    FROM counted WINDOW alike AS (PARTITION BY start_us, purgatory, kind)
)
SELECT
    instant(start_us) AS minute, purgatory, kind,
    total(operations) AS operations,
    {", ".join(f"total(if(outcome = '{each}', operations, 0)) AS {each}" for each in OUTCOMES)},
    quantile(wait_us, waits_upto, waits_in_all, 0.5) AS wait_p50_us,
    quantile(wait_us, waits_upto, waits_in_all, 0.9) AS wait_p90_us,
    quantile(wait_us, waits_upto, waits_in_all, 0.99) AS wait_p99_us,
    quantile(wait_us, waits_upto, waits_in_all, 0.999) AS wait_p999_us,
    quantile(late_us, lates_upto, lates_in_all, 0.99) AS lateness_p99_us,
    sum(tries) / sum(operations) AS tries_per_operation,
    start_us, max(latest_us) AS latest_us
FROM numbered GROUP BY start_us, purgatory, kind
"""

# There is one row for each minute, purgatory and kind in which an operation ended. ``operations`` is the
# number of operations, and ``completed``, … are their numbers by outcome. The quantiles are in microseconds,
# with the precision of the bins of `sql`: quantiles of the waits of all operations, and of the lateness of
# operations that have one.
MINUTES: Final = Part(
    "minutes",
    OPERATIONS,
    columns(OPERATIONS, *READS),
    partial(select, COUNTED.format(length_us=MINUTE_US)),
    group=("start_us", "purgatory", "kind"),
    merge=partial(select, MEASURED),
)
