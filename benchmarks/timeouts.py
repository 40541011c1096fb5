"""How well the pipeline finds timeouts in journals whose truth is known: ``python -m benchmarks.timeouts``.

Prints the tables of docs/timeouts.md. The waits are log-normal; each is cut off by its timeout, or by a
caller that leaves for reasons of its own. The seeds are fixed, so the tables are the same on each run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.advice import duration
from purgatory.pipeline.jobs.advise import SHARES
from purgatory.pipeline.session import spark_session
from purgatory.pipeline.transforms import survival

OPERATIONS = 200_000
MEDIAN_US = 200_000
SIGMA = 1.0
# After how long callers leave, on average.
PATIENCE_US = 5_000_000

# Each a journal of its own, whose operations have one of these at random.
TIMEOUTS_US = ((500_000,), (500_000, 2_000_000, 10_000_000))

HEADER = (
    "would complete",
    "truth",
    "Kaplan-Meier (95 % interval)",
    "off by",
    "naive",
    "off by",
    "more complete: advised",
    "in truth",
)


def truth(timeouts: Sequence[int], spark: SparkSession) -> DataFrame:
    """Operations, with when each would complete and be cancelled if it were let."""
    # What is drawn depends on the partition, so their number is fixed.
    drawn = spark.range(0, OPERATIONS, 1, numPartitions=2).select(
        F.lit("all").alias("subject"),
        F.round(MEDIAN_US * F.exp(SIGMA * F.randn(1))).cast("long").alias("completion"),
        F.round(-PATIENCE_US * F.log(1 - F.rand(2))).cast("long").alias("cancellation"),
        F.element_at(
            F.array(*map(F.lit, timeouts)), (F.floor(F.rand(3) * len(timeouts)) + 1).cast("int")
        ).alias("timeout"),
    )
    wait = F.least("completion", "cancellation", "timeout")
    return (
        drawn.withColumn("waited_us", wait)
        .withColumn(
            "outcome",
            F.when(F.col("completion") == wait, "completed")
            .when(F.col("timeout") == wait, "expired")
            .otherwise("cancelled"),
        )
        .withColumn("lateness_us", F.when(F.col("outcome") == "expired", 0))
    )


def completed_with(timeout: int, operations: DataFrame) -> int:
    """How many would have completed; those that were cancelled stay so, unless the timeout comes first."""
    end = F.when(F.col("outcome") == "cancelled", F.least("cancellation", F.lit(timeout))).otherwise(timeout)
    return operations.where(F.col("completion") <= end).count()


def lines(timeouts: Sequence[int], spark: SparkSession) -> Iterator[str]:
    operations = truth(timeouts, spark).cache()
    curves = survival.curves(survival.ends(operations)).cache()
    rows = survival.changes(curves, survival.timeouts(curves, SHARES)).orderBy("share").collect()
    completed = operations.where("outcome = 'completed'").count()

    yield f"Timeouts of {' or '.join(map(duration, timeouts))}; {completed / OPERATIONS:.1%} completed:"
    yield ""
    yield f"| {' | '.join(HEADER)} |"
    yield f"|{'--:|' * len(HEADER)}"
    for row in rows:
        right = MEDIAN_US * math.exp(SIGMA * NormalDist().inv_cdf(row.share))
        estimated = (
            (f"not identifiable beyond {duration(row.followed_us)}", "", "", "")
            if row.timeout_us is None
            else (
                f"{duration(row.timeout_us)} ({interval(row)})",
                off(row.timeout_us, right),
                f"{row.more_completed:+,.0f}",
                f"{completed_with(row.timeout_us, operations) - completed:+,}",
            )
        )
        cells = [f"{100 * row.share:g} %", duration(right), *estimated[:2]]
        cells += [duration(row.naive_us), off(row.naive_us, right), *estimated[2:]]
        yield f"| {' | '.join(cells)} |"


def interval(row: Row) -> str:
    high = "…" if row.timeout_high_us is None else duration(row.timeout_high_us)
    return f"{duration(row.timeout_low_us)} to {high}"


def off(estimate: float, right: float) -> str:
    return f"{100 * (estimate / right - 1):+.1f} %"


def main() -> None:
    with spark_session("local[2]", "timeouts", settings={"spark.sql.shuffle.partitions": "4"}) as spark:
        for timeouts in TIMEOUTS_US:
            print(*lines(timeouts, spark), "", sep="\n")


if __name__ == "__main__":
    main()
