"""Operations that never were, of which everything is known: what a journal of them would hold.

Each value of a row comes from the seed and the row's number by a hash, and from nothing else: the same rows
whatever the cluster, and however it was cut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.schemas import CHECKS, OPERATIONS

# An operation is late by less than a tick, in microseconds.
_TICK_US: Final = 1000
# In the lower half of an operation's id is its number, as the journal's writer has it.
NUMBERS: Final = 1 << 32
_NUMBER: Final = f"operation_id & {NUMBERS - 1}"

# What can be wrong with a row: the column, and what it says instead.
_DEFECTS: Final = (
    ("kind", "CAST(NULL AS string)"),
    ("kind", "''"),
    ("keys", "array(CAST(NULL AS string))"),
    ("started", "CAST(NULL AS timestamp)"),
    ("started", "TIMESTAMP '1969-07-20 20:17:40'"),
    ("waited_us", "-1 - waited_us"),
    ("lateness_us", "waited_us + 1"),
    ("outcome", "'forgotten'"),
    ("tries", "0"),
)


@dataclass(frozen=True, slots=True)
class Kind:
    """Operations that complete after exp(N(ln median, sigma)) seconds, unless they end before."""

    name: str
    median: float
    sigma: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Workload:
    """What is true of the operations. Times are in seconds, shares are of 1."""

    operations: int = 1_000_000
    seed: int = 0
    kinds: tuple[Kind, ...] = (Kind("Fetch", 0.2, 1.0, 0.5), Kind("Produce", 0.02, 0.6, 0.1))
    nodes: int = 3
    keys: int = 10_000
    # How unequal keys are: the k-th is wanted about k ** -zipf times as often as the first.
    zipf: float = 1.1
    # This share watches the first key alone, and the others as above.
    hot: float = 0.0
    # This share is withdrawn at a moment before the timeout, unless completed by then; any is as likely.
    withdrawn: float = 0.02
    # This share is recorded wrongly.
    malformed: float = 0.001
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    # From the first start to the last.
    duration: float = 3600.0


def operations(numbers: DataFrame, workload: Workload) -> DataFrame:
    """For each of `numbers` (id, from 0, below NUMBERS) the operation, of schemas.OPERATIONS."""
    draw = _Draws(workload.seed, F.col("id"))
    node = draw.below("node", workload.nodes)
    kind = draw.below("kind", len(workload.kinds))
    ended = numbers.select(
        "id",
        F.format_string("node-%d", node).alias("node"),
        # Another run of the writer, so another upper half, for each node.
        F.shiftrightunsigned(F.xxhash64(F.lit(workload.seed), F.lit("run"), node), 33).alias("run"),
        _choice(kind, [F.lit(each.name) for each in workload.kinds]).alias("kind"),
        _choice(kind, [F.lit(round(each.timeout * 1e6)).cast("long") for each in workload.kinds]).alias(
            "timeout_us"
        ),
        _choice(kind, [_completion(draw, each) for each in workload.kinds]).alias("completion"),
    ).withColumn(
        "withdrawal",
        F.when(
            draw.uniform("withdrawn") < workload.withdrawn,
            F.floor(draw.uniform("withdrawal") * F.col("timeout_us")),
        ),
    )
    limit = F.least("timeout_us", "withdrawal")
    outcome = (
        F.when(F.col("completion") < limit, "completed")
        .when(F.col("withdrawal").isNotNull(), "cancelled")
        .otherwise("expired")
    )
    completed, expired = F.col("outcome") == "completed", F.col("outcome") == "expired"
    start_us = round(workload.start.timestamp() * 1e6)
    return (
        ended.withColumn("outcome", outcome)
        .withColumn("lateness_us", F.when(expired, draw.below("lateness", _TICK_US)))
        .withColumn("purgatory", F.lower("kind"))
        .withColumn("operation_id", F.shiftleft("run", 32) + F.col("id"))
        .withColumn("keys", _keys(draw, workload))
        .withColumn(
            "started", F.timestamp_micros(start_us + draw.below("start", round(workload.duration * 1e6)))
        )
        .withColumn(
            "waited_us",
            F.when(completed, F.col("completion")).otherwise(limit + F.coalesce("lateness_us", F.lit(0))),
        )
        # When it was offered, and then in vain some number of times, two on average.
        .withColumn(
            "tries",
            (1 + F.floor(-2.5 * F.log(draw.uniform("tries"))) + completed.cast("int")).cast("int"),
        )
        .select(*OPERATIONS.names)
    )


def checks(operations: DataFrame) -> DataFrame:
    """The checks that tried these operations, of schemas.CHECKS: one each, as if at its end."""
    tried = F.col("tries") - 1
    return (
        operations.where(tried > 0)
        .select(
            "node",
            "purgatory",
            F.element_at("keys", 1).alias("key"),
            F.timestamp_micros(F.unix_micros("started") + F.col("waited_us")).alias("checked"),
            tried.alias("tried"),
            (F.col("outcome") == "completed").cast("int").alias("completed"),
        )
        .select(*CHECKS.names)
    )


def spoiled(operations: DataFrame, workload: Workload) -> DataFrame:
    """These operations, with something wrong in a share of them."""
    draw = _Draws(workload.seed, F.expr(_NUMBER))
    chosen = F.when(draw.uniform("malformed") < workload.malformed, draw.below("defect", len(_DEFECTS)))
    columns = {name: F.col(name) for name in operations.columns}
    for number, (name, value) in enumerate(_DEFECTS):
        columns[name] = F.when(chosen == number, F.expr(value)).otherwise(columns[name])
    return operations.select(*(column.alias(name) for name, column in columns.items()))


class _Draws:
    """Random values, by the name of what they are for, that depend on a seed and a number."""

    def __init__(self, seed: int, number: Column) -> None:
        self._seed = F.lit(seed)
        self._number = number

    def uniform(self, purpose: str) -> Column:
        """In (0, 1)."""
        bits = F.shiftrightunsigned(F.xxhash64(self._seed, F.lit(purpose), self._number), 11)
        return (bits + 0.5) / float(1 << 53)

    def below(self, purpose: str, limit: int) -> Column:
        """A whole number from 0."""
        return F.least(F.floor(self.uniform(purpose) * limit), F.lit(limit - 1)).cast("long")

    def normal(self, purpose: str) -> Column:
        """Of mean 0 and deviation 1, after Box and Muller."""
        radius = F.sqrt(-2 * F.log(self.uniform(f"{purpose}, radius")))
        return radius * F.cos(2 * math.pi * self.uniform(f"{purpose}, angle"))


def _completion(draw: _Draws, kind: Kind) -> Column:
    """Microseconds."""
    return F.round(kind.median * 1e6 * F.exp(kind.sigma * draw.normal("completion"))).cast("long")


def _keys(draw: _Draws, workload: Workload) -> Column:
    """One key, and for a quarter of the operations a second one."""
    first = F.when(draw.uniform("hot") < workload.hot, F.lit(1)).otherwise(
        _rank(draw.uniform("key"), workload)
    )
    second = _rank(draw.uniform("second key"), workload)
    both = (draw.uniform("keys") < 0.25) & (first != second)
    name = F.format_string("key-%d", first)
    return F.when(both, F.array(name, F.format_string("key-%d", second))).otherwise(F.array(name))


def _rank(uniform: Column, workload: Workload) -> Column:
    """From 1: the whole part of x with the density x ** -zipf, up to `keys`. (Zipf's law has whole x.)"""
    power, end = 1 - workload.zipf, workload.keys + 1.0
    if math.isclose(power, 0, abs_tol=1e-9):
        x = F.pow(F.lit(end), uniform)
    else:
        x = F.pow(1 + uniform * (end**power - 1), F.lit(1 / power))
    return F.least(F.floor(x), F.lit(workload.keys)).cast("long")


def _choice(number: Column, values: list[Column]) -> Column:
    return F.element_at(F.array(*values), (number + 1).cast("int"))
