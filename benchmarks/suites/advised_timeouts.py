"""How well the pipeline's advisor finds timeouts in journals whose truth is known.

Prints the tables of docs/timeouts.md. The operations are those of ``purgatory-pipeline generate``: waits are
log-normal, each cut off by its timeout or by a caller that leaves. Seeds are fixed, so the tables are the
same on each run.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from benchmarks.harness.benchmark import Result, Setting
from purgatory.pipeline.advise import survival
from purgatory.pipeline.advise.effects import effects
from purgatory.pipeline.advise.evidence import Reading
from purgatory.pipeline.jobs.advise import SHARES
from purgatory.pipeline.text import duration
from purgatory.pipeline.transforms.synthesis import operations
from purgatory.pipeline.workload import Kind, Workload

OPERATIONS = 200_000
MEDIAN = 0.2
SIGMA = 1.0
# The share that is withdrawn by its caller.
WITHDRAWN = 0.05
# Each is a journal, whose operations have one of these timeouts at random, in seconds.
JOURNALS = ((0.5,), (0.5, 2.0, 10.0))
TIMEOUTS = ("purgatory", "kind", "key", "timeout_us")
NO_KEYS = pa.table({"purgatory": pa.array([], pa.string()), "key": pa.array([], pa.string())})
ESTIMATES = ("truth", "Kaplan-Meier (95 % interval)", "off by", "naive", "off by")
HEADINGS = ("would complete", *ESTIMATES, "more complete: advised", "in truth")


def run(setting: Setting, repetitions: int, console: Console) -> Iterator[Result]:
    """Print the tables. There is nothing to record."""
    for timeouts in JOURNALS:
        print(*table(timeouts), "", sep="\n")
    return iter(())


def table(timeouts: Sequence[float]) -> Iterator[str]:
    """The advice for one journal, beside the truth."""
    recorded = generated(timeouts, WITHDRAWN)
    part = survival.curves(NO_KEYS, lambda curves: curves)
    curves = part.merge(part.condense(recorded.select(part.reads.names)))
    completed = len(completed_in(recorded))
    # The callers that have left would leave again.
    others = recorded.filter(pc.not_equal(recorded["outcome"], "cancelled"))["operation_id"]
    written = " or ".join(duration(1e6 * timeout) for timeout in timeouts)
    yield f"Timeouts of {written}; {completed / OPERATIONS:.1%} completed:\n"
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{'--:|' * len(HEADINGS)}"
    readings = survival.timeouts(SHARES, curves)
    found = effects(readings.filter(pc.is_valid(readings["timeout_us"])).select(TIMEOUTS), curves)
    changes = {each["timeout_us"]: each["more_completed"] for each in found.to_pylist()}
    for reading in readings.sort_by("share").to_pylist():
        row = Reading(**reading)
        right = MEDIAN * 1e6 * math.exp(SIGMA * NormalDist().inv_cdf(row.share))
        estimate, off, more, in_truth = f"not identifiable beyond {duration(row.followed_us)}", "", "", ""
        if row.timeout_us is not None:
            high = "…" if row.timeout_high_us is None else duration(row.timeout_high_us)
            low = duration(row.timeout_low_us or 0)
            estimate = f"{duration(row.timeout_us)} ({low} to {high})"
            off = off_by(row.timeout_us, right)
            more = f"{changes[row.timeout_us]:+,.0f}"
            let = completed_in(generated([row.timeout_us / 1e6] * len(timeouts), 0))
            in_truth = f"{pc.sum(pc.is_in(others, let)).as_py() - completed:+,}"
        assert row.naive_us is not None
        naive = (duration(row.naive_us), off_by(row.naive_us, right))
        cells = (f"{100 * row.share:g} %", duration(right), estimate, off, *naive, more, in_truth)
        yield f"| {' | '.join(cells)} |"


def generated(timeouts: Sequence[float], withdrawn: float) -> pa.Table:
    """The same operations each time, but for the timeouts and for those that are withdrawn."""
    kinds = tuple(Kind("Fetch", MEDIAN, SIGMA, timeout) for timeout in timeouts)
    workload = Workload(operations=OPERATIONS, seed=1, kinds=kinds, withdrawn=withdrawn, malformed=0)
    return operations(workload, 0, OPERATIONS)


def completed_in(operations: pa.Table) -> pa.Array:
    """The ids of the operations that completed."""
    return operations.filter(pc.equal(operations["outcome"], "completed"))["operation_id"].combine_chunks()


def off_by(estimate: float, right: float) -> str:
    return f"{100 * (estimate / right - 1):+.1f} %"
