"""How well the pipeline finds timeouts in journals whose truth is known: ``python -m benchmarks.timeouts``.

Prints the tables of docs/timeouts.md. The operations are those of ``purgatory-pipeline generate``: waits are
log-normal, each cut off by its timeout or by a caller that leaves. Seeds are fixed, so the tables are the
same on each run. With the path of a dataset that ``advise`` has been run on it prints what is known of that.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from benchmarks.arguments import command_line
from purgatory.pipeline.advice import duration
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs.advise import SHARES, TIMEOUTS
from purgatory.pipeline.session import spark_session
from purgatory.pipeline.transforms import survival
from purgatory.pipeline.transforms.synthesis import Kind, Workload, operations

OPERATIONS = 200_000
MEDIAN = 0.2
SIGMA = 1.0
# Each a journal of its own, whose operations have one of these timeouts at random, in seconds.
JOURNALS = ((0.5,), (0.5, 2.0, 10.0))

ESTIMATED = ("would complete", "Kaplan-Meier (95 % interval)", "naive")
KNOWN = (
    "would complete",
    "truth",
    "Kaplan-Meier (95 % interval)",
    "off by",
    "naive",
    "off by",
    "more complete: advised",
    "in truth",
)


def workload(timeouts: Sequence[float]) -> Workload:
    return Workload(
        operations=OPERATIONS,
        seed=1,
        kinds=tuple(Kind("Fetch", MEDIAN, SIGMA, timeout) for timeout in timeouts),
        withdrawn=0.05,
        malformed=0,
    )


def made(spark: SparkSession, given: Workload) -> DataFrame:
    return operations(spark.range(0, given.operations), given).withColumn("subject", F.lit("all"))


def completed_with(timeout: float, recorded: DataFrame, given: Workload) -> int:
    """How many would have completed: the same operations under this timeout, but for those withdrawn."""
    kinds = tuple(replace(kind, timeout=timeout) for kind in given.kinds)
    let = made(recorded.sparkSession, replace(given, kinds=kinds, withdrawn=0)).where("outcome = 'completed'")
    return recorded.where("outcome != 'cancelled'").join(let, "operation_id", "left_semi").count()


def against_the_truth(timeouts: Sequence[float], spark: SparkSession) -> Iterator[str]:
    given = workload(timeouts)
    recorded = made(spark, given).cache()
    curves = survival.curves(survival.ends(recorded)).cache()
    rows = survival.changes(curves, survival.timeouts(curves, SHARES)).orderBy("share").collect()
    completed = recorded.where("outcome = 'completed'").count()

    said = " or ".join(duration(1e6 * timeout) for timeout in timeouts)
    yield f"Timeouts of {said}; {completed / OPERATIONS:.1%} completed:"
    yield ""
    yield from header(KNOWN)
    for row in rows:
        right = MEDIAN * 1e6 * math.exp(SIGMA * NormalDist().inv_cdf(row.share))
        more = ("", "")
        if row.timeout_us is not None:
            would = completed_with(row.timeout_us / 1e6, recorded, given)
            more = (f"{row.more_completed:+,.0f}", f"{would - completed:+,}")
        yield line(
            f"{100 * row.share:g} %",
            duration(right),
            estimated(row),
            off(row.timeout_us, right),
            duration(row.naive_us),
            off(row.naive_us, right),
            *more,
        )


def of_dataset(dataset: Dataset, spark: SparkSession) -> Iterator[str]:
    advised = spark.read.parquet(dataset.advice(TIMEOUTS)).where("key IS NULL")
    rows = advised.orderBy("purgatory", "kind", "share").collect()
    for first in range(0, len(rows), len(SHARES)):
        kind = rows[first]
        yield f"{kind.kind} in {kind.purgatory}, {kind.operations:,} operations:"
        yield ""
        yield from header(ESTIMATED)
        for row in rows[first : first + len(SHARES)]:
            naive = "" if row.naive_us is None else duration(row.naive_us)
            yield line(f"{100 * row.share:g} %", estimated(row), naive)
        yield ""


def header(names: Sequence[str]) -> Iterator[str]:
    yield line(*names)
    yield f"|{'--:|' * len(names)}"


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def estimated(row: Row) -> str:
    if row.timeout_us is None:
        return f"not identifiable beyond {duration(row.followed_us)}"
    high = "…" if row.timeout_high_us is None else duration(row.timeout_high_us)
    return f"{duration(row.timeout_us)} ({duration(row.timeout_low_us)} to {high})"


def off(estimate: float | None, right: float) -> str:
    return "" if estimate is None else f"{100 * (estimate / right - 1):+.1f} %"


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = command_line("python -m benchmarks.timeouts", __doc__ or "", "")
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help="one that `advise` has been run on")
    datasets: list[str] = parser.parse_args(arguments).datasets
    with spark_session("local[2]", "timeouts", settings={"spark.sql.shuffle.partitions": "4"}) as spark:
        for root in datasets:
            print(*of_dataset(Dataset(root), spark), sep="\n")
        if not datasets:
            for timeouts in JOURNALS:
                print(*against_the_truth(timeouts, spark), "", sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
