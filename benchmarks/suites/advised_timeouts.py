"""How well the pipeline's advisor finds timeouts in journals whose truth is known.

Prints the tables of docs/timeouts.md. The operations are those of ``purgatory-pipeline generate``: waits are
log-normal, each cut off by its timeout or by a caller that leaves. Seeds are fixed, so the tables are the
same on each run. With ``--directory DATASET`` it prints the advice for a dataset that ``advise`` has been
run on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from benchmarks.harness.benchmark import Result
from benchmarks.harness.setting import Setting
from purgatory.pipeline.advice import duration
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs.advise import SHARES, TIMEOUTS
from purgatory.pipeline.session import spark_session
from purgatory.pipeline.transforms import survival
from purgatory.pipeline.transforms.synthesis import Kind, Workload, operations

OPERATIONS = 200_000
MEDIAN = 0.2
SIGMA = 1.0
# Each is a journal, whose operations have one of these timeouts at random, in seconds.
JOURNALS = ((0.5,), (0.5, 2.0, 10.0))
ESTIMATED = ("would complete", "Kaplan-Meier (95 % interval)", "naive")
ESTIMATES = ("truth", "Kaplan-Meier (95 % interval)", "off by", "naive", "off by")
KNOWN = ("would complete", *ESTIMATES, "more complete: advised", "in truth")


def run(setting: Setting, repetitions: int, console: Console) -> Iterator[Result]:
    """Print the tables. There is nothing to record."""
    with spark_session("local[2]", "timeouts", settings={"spark.sql.shuffle.partitions": "4"}) as spark:
        if setting.directory is not None:
            print(*of_dataset(Dataset(setting.directory), spark), sep="\n")
        else:
            for timeouts in JOURNALS:
                print(*against_the_truth(timeouts, spark), "", sep="\n")
    yield from ()


def workload(timeouts: Sequence[float]) -> Workload:
    """Operations of which 5 % are withdrawn by their caller."""
    kinds = tuple(Kind("Fetch", MEDIAN, SIGMA, timeout) for timeout in timeouts)
    return Workload(operations=OPERATIONS, seed=1, kinds=kinds, withdrawn=0.05, malformed=0)


def made(spark: SparkSession, given: Workload) -> DataFrame:
    return operations(spark.range(0, given.operations), given).withColumn("stratum", F.lit("all"))


def completed_with(timeout: float, recorded: DataFrame, given: Workload) -> int:
    """How many operations, except those withdrawn, would have completed under this timeout."""
    kinds = tuple(replace(kind, timeout=timeout) for kind in given.kinds)
    let = made(recorded.sparkSession, replace(given, kinds=kinds, withdrawn=0)).where("outcome = 'completed'")
    return recorded.where("outcome != 'cancelled'").join(let, "operation_id", "left_semi").count()


def against_the_truth(timeouts: Sequence[float], spark: SparkSession) -> Iterator[str]:
    """The table for one journal."""
    given = workload(timeouts)
    recorded = made(spark, given).cache()
    curves = survival.curves(survival.ends(recorded)).cache()
    rows = survival.changes(curves, survival.timeouts(curves, SHARES)).orderBy("share").collect()
    completed = recorded.where("outcome = 'completed'").count()
    written = " or ".join(duration(1e6 * timeout) for timeout in timeouts)
    yield f"Timeouts of {written}; {completed / OPERATIONS:.1%} completed:"
    yield ""
    yield from header(KNOWN)
    for row in rows:
        right = MEDIAN * 1e6 * math.exp(SIGMA * NormalDist().inv_cdf(row.share))
        more = ("", "")
        if row.timeout_us is not None:
            would = completed_with(row.timeout_us / 1e6, recorded, given)
            more = (f"{row.more_completed:+,.0f}", f"{would - completed:+,}")
        estimates = (
            estimated(row),
            off(row.timeout_us, right),
            duration(row.naive_us),
            off(row.naive_us, right),
        )
        yield line(f"{100 * row.share:g} %", duration(right), *estimates, *more)


def of_dataset(dataset: Dataset, spark: SparkSession) -> Iterator[str]:
    """The tables for a dataset."""
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
