"""Running sums over several blocks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.running_sum import running_sum

BLOCKS = 5


@pytest.fixture(autouse=True)
def several_blocks(spark: SparkSession) -> Iterator[None]:
    """Enough blocks to have some between the first and the last one, each in its own task."""
    settings = {
        "spark.sql.shuffle.partitions": str(BLOCKS),
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def shuffled(rows: list[Any]) -> list[Any]:
    return random.Random(1).sample(rows, len(rows))


def sums(frame: DataFrame) -> dict[int, int]:
    return {row["id"]: row["amount_running"] for row in frame.collect()}


def test_each_row_has_the_sum_of_its_group_up_to_it(spark: SparkSession) -> None:
    # Groups that span all blocks, some, or less than one; ties; negative amounts; rows in any order.
    chance = random.Random(7)
    rows = [
        (number, chance.choice("aaaaaaaaaabbbcd"), chance.randrange(300), chance.randrange(-5, 9))
        for number in range(600)
    ]
    frame = spark.createDataFrame(shuffled(rows), "id int, name string, at int, amount long")

    found = sums(running_sum(frame, order_by=["at"], value_columns=["amount"], within=["name"]))

    assert found == {
        number: sum(other for _, group, when, other in rows if group == name and when <= at)
        for number, name, at, _ in rows
    }


def test_several_columns_are_summed_in_which_nulls_count_as_zero(spark: SparkSession) -> None:
    # Nulls come first in the order, and form a group.
    frame = spark.createDataFrame(
        [
            (None, None, None, Decimal("0.1")),
            (None, 1, 5, Decimal("0.2")),
            (None, 2, None, Decimal("0.3")),
            ("a", None, 7, Decimal("0.4")),
            ("a", 1, 1, None),
        ],
        "name string, at int, some int, other decimal(9, 1)",
    )

    result = running_sum(frame, order_by=["at"], value_columns=["some", "other"], within=["name"])

    assert result.columns == ["name", "at", "some", "other", "some_running", "other_running"]
    assert {(row["name"], row["at"]): row[4:] for row in result.collect()} == {
        (None, None): (0, Decimal("0.1")),
        (None, 1): (5, Decimal("0.3")),
        (None, 2): (5, Decimal("0.6")),
        ("a", None): (7, Decimal("0.4")),
        ("a", 1): (8, Decimal("0.4")),
    }


def test_without_groups_the_sum_is_that_of_all_rows_in_an_order_of_several_columns(
    spark: SparkSession,
) -> None:
    rows = [(10 * major + minor, major, minor, 1) for major in range(6) for minor in range(10)]
    frame = spark.createDataFrame(shuffled(rows), "id int, major int, minor int, amount int")

    found = sums(running_sum(frame, order_by=["major", "minor"], value_columns=["amount"]))

    assert found == {number: number + 1 for number in range(60)}


def test_without_rows_there_are_no_sums(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "id int, at int, amount int")

    assert sums(running_sum(frame, order_by=["at"], value_columns=["amount"])) == {}


def test_each_row_is_computed_once_so_that_random_rows_have_consistent_sums(
    spark: SparkSession,
) -> None:
    frame = spark.range(300).select(F.rand().alias("at"), F.floor(F.rand() * 1000).alias("amount"))

    rows = running_sum(frame, order_by=["at"], value_columns=["amount"]).orderBy("at").collect()

    total = 0
    for row in rows:
        total += row["amount"]
        assert row["amount_running"] == total


def test_one_huge_group_is_split_among_tasks(spark: SparkSession) -> None:
    frame = spark.range(4000).selectExpr("'all' as name", "id as at", "1 as amount")

    result = running_sum(frame, order_by=["at"], value_columns=["amount"], within=["name"])

    on_each_task = result.groupBy(F.spark_partition_id()).count().collect()
    # Blocks go to tasks by a hash, so two may be in the same task.
    assert max(row["count"] for row in on_each_task) <= 0.6 * 4000
    assert len(on_each_task) >= 2
