"""Synthetic operations with known distributions, with the columns of a journal.

Each value is a hash of the seed, the row's number, and the name of its purpose. So the rows are the same on
every cluster, with any number of partitions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory.journal.schema import CANCELLED, CHECKS_SCHEMA, COMPLETED, EXPIRED, OPERATIONS_SCHEMA

# The tick, in microseconds. An operation is less than a tick late.
_TICK_US: Final = 1000
# The lower half of an operation's id is its number, as in the ids of a JournalWriter.
NUMBERS: Final = 1 << 32
_NUMBER: Final = f"operation_id & {NUMBERS - 1}"

# Defects of rows: a column, and its wrong value.
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
    """Operations that complete after exp(N(ln median, sigma)) seconds, unless they end before that."""

    name: str
    median: float
    sigma: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Workload:
    """The parameters of the operations. Times are in seconds, shares are between 0 and 1."""

    operations: int = 1_000_000
    seed: int = 0
    kinds: tuple[Kind, ...] = (Kind("Fetch", 0.2, 1.0, 0.5), Kind("Produce", 0.02, 0.6, 0.1))
    nodes: int = 3
    keys: int = 10_000
    # The k-th key is used about k ** -zipf times as often as the first.
    zipf: float = 1.1
    # The share of operations that watch the first key. The other operations choose their keys by `zipf`.
    hot: float = 0.0
    # The share of operations that are cancelled at a uniform time before the timeout, if they have not
    # completed.
    withdrawn: float = 0.02
    # The share of rows with a defect.
    malformed: float = 0.001
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    # The time from the first start to the last.
    duration: float = 3600.0


def operations(numbers: DataFrame, workload: Workload) -> DataFrame:
    """One operation for each row of `numbers`, with the columns of a journal's operations.

    `numbers` has the column id: whole numbers from 0, below NUMBERS.
    """
    draw = _RandomValues(workload.seed, F.col("id"))
    node = draw.below("node", workload.nodes)
    kind = draw.below("kind", len(workload.kinds))
    ended = numbers.select(
        "id",
        F.format_string("node-%d", node).alias("node"),
        # Each node has its own run of a writer, and so its own upper half of the ids.
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
        F.when(F.col("completion") < limit, COMPLETED)
        .when(F.col("withdrawal").isNotNull(), CANCELLED)
        .otherwise(EXPIRED)
    )
    completed, expired = F.col("outcome") == COMPLETED, F.col("outcome") == EXPIRED
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
        # The try when it was offered, and a random number of unsuccessful tries, two on average.
        .withColumn(
            "tries",
            (1 + F.floor(-2.5 * F.log(draw.uniform("tries"))) + completed.cast("int")).cast("int"),
        )
        .select(*OPERATIONS_SCHEMA.names)
    )


def checks(operations: DataFrame) -> DataFrame:
    """The checks that tried these operations, with the columns of a journal's checks.

    There is one check for each operation, at its end.
    """
    tried = F.col("tries") - 1
    return (
        operations.where(tried > 0)
        .select(
            "node",
            "purgatory",
            F.element_at("keys", 1).alias("key"),
            F.timestamp_micros(F.unix_micros("started") + F.col("waited_us")).alias("checked"),
            tried.alias("tried"),
            (F.col("outcome") == COMPLETED).cast("int").alias("completed"),
        )
        .select(*CHECKS_SCHEMA.names)
    )


def with_defects(operations: DataFrame, workload: Workload) -> DataFrame:
    """Add defects to a share of the operations."""
    draw = _RandomValues(workload.seed, F.expr(_NUMBER))
    chosen = F.when(draw.uniform("malformed") < workload.malformed, draw.below("defect", len(_DEFECTS)))
    columns = {name: F.col(name) for name in operations.columns}
    for number, (name, value) in enumerate(_DEFECTS):
        columns[name] = F.when(chosen == number, F.expr(value)).otherwise(columns[name])
    return operations.select(*(column.alias(name) for name, column in columns.items()))


class _RandomValues:
    """Random values that depend on a seed, a number, and the name of their purpose."""

    def __init__(self, seed: int, number: Column) -> None:
        self._seed = F.lit(seed)
        self._number = number

    def uniform(self, purpose: str) -> Column:
        """A uniform value in (0, 1)."""
        bits = F.shiftrightunsigned(F.xxhash64(self._seed, F.lit(purpose), self._number), 11)
        return (bits + 0.5) / float(1 << 53)

    def below(self, purpose: str, limit: int) -> Column:
        """A uniform whole number from 0 to below `limit`."""
        return F.least(F.floor(self.uniform(purpose) * limit), F.lit(limit - 1)).cast("long")

    def normal(self, purpose: str) -> Column:
        """A standard normal value, by the method of Box and Muller."""
        radius = F.sqrt(-2 * F.log(self.uniform(f"{purpose}, radius")))
        return radius * F.cos(2 * math.pi * self.uniform(f"{purpose}, angle"))


def _completion(draw: _RandomValues, kind: Kind) -> Column:
    """The time to completion in microseconds."""
    return F.round(kind.median * 1e6 * F.exp(kind.sigma * draw.normal("completion"))).cast("long")


def _keys(draw: _RandomValues, workload: Workload) -> Column:
    """One key, and a second one for a quarter of the operations."""
    first = F.when(draw.uniform("hot") < workload.hot, F.lit(1)).otherwise(
        _rank(draw.uniform("key"), workload)
    )
    second = _rank(draw.uniform("second key"), workload)
    both = (draw.uniform("keys") < 0.25) & (first != second)
    name = F.format_string("key-%d", first)
    return F.when(both, F.array(name, F.format_string("key-%d", second))).otherwise(F.array(name))


def _rank(uniform: Column, workload: Workload) -> Column:
    """A rank from 1 to `keys`: the whole part of x with the density x ** -zipf. (Zipf's law has whole x.)"""
    power, end = 1 - workload.zipf, workload.keys + 1.0
    if math.isclose(power, 0, abs_tol=1e-9):
        x = F.pow(F.lit(end), uniform)
    else:
        x = F.pow(1 + uniform * (end**power - 1), F.lit(1 / power))
    return F.least(F.floor(x), F.lit(workload.keys)).cast("long")


def _choice(number: Column, values: list[Column]) -> Column:
    return F.element_at(F.array(*values), (number + 1).cast("int"))
