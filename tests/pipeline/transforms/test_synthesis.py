"""Synthetic operations: reproducible, and distributed as requested."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from statistics import NormalDist

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from purgatory.journal.schema import CHECKS_SCHEMA, OPERATIONS_SCHEMA
from purgatory.pipeline.schemas import CHECKS_TABLE, OPERATIONS_TABLE, Table
from purgatory.pipeline.transforms.synthesis import Kind, Workload, checks, operations, with_defects
from purgatory.pipeline.transforms.validation import reasons

COUNT = 4_000
FETCH, PRODUCE = Kind("Fetch", 0.2, 1.0, 0.5), Kind("Produce", 0.02, 0.6, 0.1)
WORKLOAD = Workload(operations=COUNT, kinds=(FETCH, PRODUCE), withdrawn=0.1, malformed=0.25, hot=0.3)


def synthetic(spark: SparkSession, parts: int = 2, workload: Workload = WORKLOAD) -> DataFrame:
    return operations(spark.range(0, workload.operations, 1, parts), workload)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> list[Row]:
    return synthetic(spark).collect()


def share(count: float) -> object:
    """A share of all rows, within four standard deviations."""
    return pytest.approx(count, abs=4 * math.sqrt(count * (1 - count) / COUNT))


def test_the_same_seed_makes_the_same_rows_in_any_partitions(spark: SparkSession, rows: list[Row]) -> None:
    again = with_defects(synthetic(spark, parts=5), WORKLOAD).exceptAll(
        with_defects(synthetic(spark), WORKLOAD)
    )
    assert again.isEmpty()
    other = synthetic(spark, workload=replace(WORKLOAD, seed=1, operations=100))
    assert {row["started"] for row in other.collect()}.isdisjoint(row["started"] for row in rows[:100])


def test_the_columns_are_those_of_the_journal(spark: SparkSession) -> None:
    frame = synthetic(spark)
    for found, wanted in ((with_defects(frame, WORKLOAD), OPERATIONS_SCHEMA), (checks(frame), CHECKS_SCHEMA)):
        assert [(field.name, field.dataType.simpleString()) for field in found.schema] == [
            (field.name, field.dataType.simpleString()) for field in from_arrow_schema(wanted)
        ]


def test_ids_are_unique_within_a_node(rows: list[Row]) -> None:
    assert len({(row["node"], row["operation_id"]) for row in rows}) == COUNT
    assert all(row["operation_id"] >= 0 for row in rows)
    runs = {(row["node"], row["operation_id"] >> 32) for row in rows}
    assert {node for node, _ in runs} == {"node-0", "node-1", "node-2"}
    assert len(runs) == len({run for _, run in runs}) == 3


def test_each_kind_has_its_share_and_its_timeout(rows: list[Row]) -> None:
    for kind in (FETCH, PRODUCE):
        mine = [row for row in rows if row["kind"] == kind.name]
        assert len(mine) / COUNT == share(0.5)
        assert {row["timeout_us"] for row in mine} == {round(kind.timeout * 1e6)}
        assert {row["purgatory"] for row in mine} == {kind.name.lower()}


def test_without_cancellations_completions_follow_the_distribution(spark: SparkSession) -> None:
    found = synthetic(spark, workload=replace(WORKLOAD, withdrawn=0, kinds=(FETCH,))).collect()
    truth = NormalDist(math.log(FETCH.median), FETCH.sigma)
    for seconds in (0.05, 0.1, 0.2, 0.4, 0.5):
        completed = [
            row for row in found if row["outcome"] == "completed" and row["waited_us"] < seconds * 1e6
        ]
        assert len(completed) / COUNT == share(truth.cdf(math.log(seconds)))
    assert {row["outcome"] for row in found} == {"completed", "expired"}


def test_the_wait_fits_the_outcome(rows: list[Row]) -> None:
    for row in rows:
        if row["outcome"] == "expired":
            assert row["waited_us"] == row["timeout_us"] + row["lateness_us"]
            assert 0 <= row["lateness_us"] < 1000
        else:
            assert row["waited_us"] < row["timeout_us"]
            assert row["lateness_us"] is None
    outcomes = Counter(row["outcome"] for row in rows)
    assert set(outcomes) == {"completed", "expired", "cancelled"}
    assert 0.03 < outcomes["cancelled"] / COUNT < 0.1


def test_keys_follow_the_requested_distribution(rows: list[Row], spark: SparkSession) -> None:
    first = Counter(row["keys"][0] for row in rows)
    end, power = WORKLOAD.keys + 1, 1 - WORKLOAD.zipf
    for rank in (1, 2, 3):
        zipf = ((rank + 1) ** power - rank**power) / (end**power - 1)
        assert first[f"key-{rank}"] / COUNT == share(0.7 * zipf + (0.3 if rank == 1 else 0))
    assert all(len(set(row["keys"])) == len(row["keys"]) in (1, 2) for row in rows)
    assert 0.15 < sum(len(row["keys"]) == 2 for row in rows) / COUNT < 0.25
    harmonic = (
        synthetic(spark, workload=replace(WORKLOAD, zipf=1, hot=0, keys=3)).groupBy(F.col("keys")[0]).count()
    )
    found = {row[0]: row["count"] for row in harmonic.collect()}
    assert found["key-1"] / COUNT == share(math.log(2) / math.log(4))
    assert set(found) == {"key-1", "key-2", "key-3"}


def test_checks_have_the_tries_and_completions_of_operations(spark: SparkSession, rows: list[Row]) -> None:
    found = checks(synthetic(spark)).collect()
    assert sum(row["tried"] for row in found) == sum(row["tries"] - 1 for row in rows)
    completed = [row for row in rows if row["outcome"] == "completed"]
    assert sum(row["completed"] for row in found) == len(completed)
    assert all(row["completed"] <= row["tried"] for row in found)
    ends = sorted(row["started"].timestamp() * 1e6 + row["waited_us"] for row in completed)
    checked = sorted(row["checked"].timestamp() * 1e6 for row in found if row["completed"])
    assert checked == pytest.approx(ends, abs=1)


def test_exactly_the_rows_with_a_defect_are_refused(spark: SparkSession) -> None:
    def refused(frame: DataFrame, table: Table = OPERATIONS_TABLE) -> dict[str, int]:
        return Counter(reasons(frame.toArrow(), table).drop_null().to_pylist())

    assert refused(synthetic(spark)) == {}
    assert refused(checks(synthetic(spark)), CHECKS_TABLE) == {}
    found = refused(with_defects(synthetic(spark), WORKLOAD))
    assert sum(found.values()) / COUNT == share(0.25)
    assert len(found) == 10
