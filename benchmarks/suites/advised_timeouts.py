"""How well the pipeline's advisor finds timeouts in journals whose truth is known.

Prints the tables of docs/timeouts.md. The operations are those of ``purgatory-pipeline generate``: waits are
log-normal, each cut off by its timeout or by a caller that leaves. Seeds are fixed, so the tables are the
same on each run. With ``--directory DATASET`` it prints the advice for a dataset that ``advise`` has been
run on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
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
# The share that is withdrawn by its caller.
WITHDRAWN = 0.05
# Each is a journal, whose operations have one of these timeouts at random, in seconds.
JOURNALS = ((0.5,), (0.5, 2.0, 10.0))
ESTIMATED = ("would complete", "Kaplan-Meier (95 % interval)", "naive")
ESTIMATES = ("truth", "Kaplan-Meier (95 % interval)", "off by", "naive", "off by")
KNOWN = ("would complete", *ESTIMATES, "more complete: advised", "in truth")


def run(setting: Setting, repetitions: int, console: Console) -> Iterator[Result]:
    """Print the tables. There is nothing to record."""
    with spark_session("local[2]", "timeouts", settings={"spark.sql.shuffle.partitions": "4"}) as spark:
        if setting.directory is not None:
            print_advice(Dataset(setting.directory), spark)
        else:
            for timeouts in JOURNALS:
                print_against_the_truth(timeouts, spark)
    return iter(())


def print_against_the_truth(timeouts: Sequence[float], spark: SparkSession) -> None:
    recorded = generated(timeouts, WITHDRAWN, spark).withColumn("stratum", F.lit("all")).cache()
    curves = survival.curves(survival.ends(recorded)).cache()
    advised = survival.changes(curves, survival.timeouts(curves, SHARES)).orderBy("share").collect()
    completed = recorded.where("outcome = 'completed'").count()
    # The callers that have left would leave again.
    others = recorded.where("outcome != 'cancelled'")
    rows = []
    for row in advised:
        right = MEDIAN * 1e6 * math.exp(SIGMA * NormalDist().inv_cdf(row.share))
        share, estimate, naive = estimates(row)
        more = in_truth = ""
        if row.timeout_us is not None:
            let = generated([row.timeout_us / 1e6] * len(timeouts), 0, spark).where("outcome = 'completed'")
            more = f"{row.more_completed:+,.0f}"
            in_truth = f"{others.join(let, 'operation_id', 'left_semi').count() - completed:+,}"
        off = (off_by(row.timeout_us, right), off_by(row.naive_us, right))
        rows.append((share, duration(right), estimate, off[0], naive, off[1], more, in_truth))
    written = " or ".join(duration(1e6 * timeout) for timeout in timeouts)
    print_table(f"Timeouts of {written}; {completed / OPERATIONS:.1%} completed", KNOWN, rows)


def generated(timeouts: Sequence[float], withdrawn: float, spark: SparkSession) -> DataFrame:
    """The same operations each time, but for the timeouts and for those that are withdrawn."""
    kinds = tuple(Kind("Fetch", MEDIAN, SIGMA, timeout) for timeout in timeouts)
    workload = Workload(operations=OPERATIONS, seed=1, kinds=kinds, withdrawn=withdrawn, malformed=0)
    return operations(spark.range(0, OPERATIONS), workload)


def print_advice(dataset: Dataset, spark: SparkSession) -> None:
    advised = spark.read.parquet(dataset.advice(TIMEOUTS)).where("key IS NULL")
    rows = advised.orderBy("purgatory", "kind", "share").collect()
    for (purgatory, kind, count), of_kind in groupby(
        rows, lambda row: (row.purgatory, row.kind, row.operations)
    ):
        print_table(f"{kind} in {purgatory}, {count:,} operations", ESTIMATED, map(estimates, of_kind))


def estimates(row: Row) -> tuple[str, str, str]:
    """The cells for ESTIMATED."""
    naive = "" if row.naive_us is None else duration(row.naive_us)
    if row.timeout_us is None:
        estimate = f"not identifiable beyond {duration(row.followed_us)}"
    else:
        high = "…" if row.timeout_high_us is None else duration(row.timeout_high_us)
        estimate = f"{duration(row.timeout_us)} ({duration(row.timeout_low_us)} to {high})"
    return f"{100 * row.share:g} %", estimate, naive


def off_by(estimate: float | None, right: float) -> str:
    return "" if estimate is None else f"{100 * (estimate / right - 1):+.1f} %"


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"{title}:\n\n| {' | '.join(headings)} |\n|{'--:|' * len(headings)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()
