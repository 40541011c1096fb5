"""What the results of the load test tell: the highest rate that each design keeps up with.

There is a result for each distribution of the times to completion. Its sections are the designs and the
generator alone, its cases the rates, the lowest first. A run of one design under load gives a sample with
these metrics, as far as the design tells them:

- achieved: requests per second, from the start to the end of the last one; without the time that the plan
  has between the last arrival and that end
- behind_ms: by how much the last arrival came later than planned
- sent, completed, expired: requests
- cpu_seconds: the processor time of the whole process
- late_p50_ms, late_p99_ms: how much later than their timeout requests expired
- held: the entries in the watch lists when the last request had ended
- rss_mb: the growth of the process at its largest, in MB of a million bytes
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from benchmarks.harness.benchmark import Result, Row, spreads

# The part of the target rate below which a design counts as saturated, and how far behind, in milliseconds.
ACHIEVED = 0.95
BEHIND_MS = 100.0
# A design is not measured further after so many rates in a row that saturate it: one may be the machine's
# fault.
ENOUGH = 2
# Measured beside the designs: what each of them spends on the load itself.
GENERATOR = "the generator alone"
COLUMNS = spreads(
    achieved="achieved/s",
    cpu_seconds="processor time, s",
    late_p50_ms="late p50, ms",
    late_p99_ms="late p99, ms",
    held="entries held",
    rss_mb="resident set, MB",
)


def rate(row: Row) -> int:
    """The target rate of a case."""
    return int(row.name.replace(",", ""))


def saturated(row: Row) -> bool:
    """Whether the design could not keep up with the rate, by the medians."""
    achieved, behind = (statistics.median(row.figures(each)) for each in ("achieved", "behind_ms"))
    return achieved < ACHIEVED * rate(row) or behind > BEHIND_MS


def finished(rows: Sequence[Row]) -> bool:
    """Whether higher rates of a design need no measurement."""
    return len(rows) >= ENOUGH and all(map(saturated, rows[-ENOUGH:]))


def saturated_at(rows: Iterable[Row]) -> int | None:
    """The lowest rate that saturates the design; None where it keeps up with all."""
    return next((rate(row) for row in rows if saturated(row)), None)


def kept_up_to(rows: Iterable[Row]) -> int | None:
    """The highest rate below that one; None where the design never keeps up."""
    return max((rate(row) for row in takewhile(lambda row: not saturated(row), rows)), default=None)


def curves(result: Result) -> Mapping[str, Sequence[Row]]:
    """The cases of each design, and of the generator."""
    return result.sections(result.tables[0])
