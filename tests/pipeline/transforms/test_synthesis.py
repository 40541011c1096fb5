"""Synthetic operations: reproducible, and distributed as requested."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from statistics import NormalDist

import pyarrow as pa
import pytest

from purgatory.journal.schema import CHECKS_SCHEMA, OPERATIONS_SCHEMA
from purgatory.pipeline.schemas import CHECKS_TABLE, OPERATIONS_TABLE, Table
from purgatory.pipeline.transforms.synthesis import checks, operations, with_defects
from purgatory.pipeline.transforms.validation import reasons
from purgatory.pipeline.workload import Kind, Workload
from tests.pipeline.journals import Row

COUNT = 4_000
FETCH, PRODUCE = Kind("Fetch", 0.2, 1.0, 0.5), Kind("Produce", 0.02, 0.6, 0.1)
WORKLOAD = Workload(operations=COUNT, kinds=(FETCH, PRODUCE), withdrawn=0.1, malformed=0.25, hot=0.3)


def synthetic(workload: Workload = WORKLOAD) -> pa.Table:
    return operations(workload, 0, COUNT)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    found: list[Row] = synthetic().to_pylist()
    return found


def share(count: float) -> object:
    """A share of all rows, within four standard deviations."""
    return pytest.approx(count, abs=4 * math.sqrt(count * (1 - count) / COUNT))


def test_the_same_seed_and_numbers_make_the_same_rows(rows: list[Row]) -> None:
    assert synthetic().to_pylist() == rows
    assert with_defects(synthetic(), WORKLOAD, 0).equals(with_defects(synthetic(), WORKLOAD, 0))
    started = {row["started"] for row in rows}
    for others in (operations(replace(WORKLOAD, seed=1), 0, 100), operations(WORKLOAD, COUNT, 100)):
        assert started.isdisjoint(others["started"].to_pylist())
    assert operations(WORKLOAD, 0, 0).num_rows == 0


def test_the_columns_are_those_of_the_journal() -> None:
    def columns(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
        return [
            (field.name, field.type.value_type if field.name == "keys" else field.type) for field in schema
        ]

    malformed = with_defects(synthetic(), WORKLOAD, 0)
    assert columns(malformed.schema) == columns(OPERATIONS_SCHEMA)
    assert columns(checks(synthetic()).schema) == columns(CHECKS_SCHEMA)


def test_ids_are_unique_within_a_node() -> None:
    rows = pa.concat_tables([synthetic(), operations(WORKLOAD, COUNT, COUNT)]).to_pylist()
    assert len({(row["node"], row["operation_id"]) for row in rows}) == 2 * COUNT
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


def test_without_cancellations_completions_follow_the_distribution() -> None:
    found = synthetic(replace(WORKLOAD, withdrawn=0, kinds=(FETCH,))).to_pylist()
    truth = NormalDist(math.log(FETCH.median), FETCH.sigma)
    for seconds in (0.05, 0.1, 0.2, 0.4, 0.5):
        completed = [
            row for row in found if row["outcome"] == "completed" and row["waited_us"] < seconds * 1e6
        ]
        assert len(completed) / COUNT == share(truth.cdf(math.log(seconds)))
    assert {row["outcome"] for row in found} == {"completed", "expired"}


def test_a_wait_beyond_all_numbers_expires() -> None:
    found = synthetic(replace(WORKLOAD, withdrawn=0, kinds=(Kind("Odd", 1e5, 99.0, 0.1),)))
    assert {"completed", "expired"} == set(found["outcome"].to_pylist())


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


def test_keys_follow_the_requested_distribution(rows: list[Row]) -> None:
    first = Counter(row["keys"][0] for row in rows)
    end, power = WORKLOAD.keys + 1, 1 - WORKLOAD.zipf
    for rank in (1, 2, 3):
        zipf = ((rank + 1) ** power - rank**power) / (end**power - 1)
        assert first[f"key-{rank}"] / COUNT == share(0.7 * zipf + (0.3 if rank == 1 else 0))
    assert all(len(set(row["keys"])) == len(row["keys"]) in (1, 2) for row in rows)
    assert 0.15 < sum(len(row["keys"]) == 2 for row in rows) / COUNT < 0.25
    harmonic = synthetic(replace(WORKLOAD, zipf=1, hot=0, keys=3))
    found = Counter(keys[0] for keys in harmonic["keys"].to_pylist())
    assert found["key-1"] / COUNT == share(math.log(2) / math.log(4))
    assert set(found) == {"key-1", "key-2", "key-3"}


def test_checks_have_the_tries_and_completions_of_operations(rows: list[Row]) -> None:
    found = checks(synthetic()).to_pylist()
    assert sum(row["tried"] for row in found) == sum(row["tries"] - 1 for row in rows)
    completed = [row for row in rows if row["outcome"] == "completed"]
    assert sum(row["completed"] for row in found) == len(completed)
    assert all(row["completed"] <= row["tried"] for row in found)
    ends = sorted(row["started"].timestamp() * 1e6 + row["waited_us"] for row in completed)
    checked = sorted(row["checked"].timestamp() * 1e6 for row in found if row["completed"])
    assert checked == pytest.approx(ends, abs=1)


def test_exactly_the_rows_with_a_defect_are_refused() -> None:
    def refused(rows: pa.Table, table: Table = OPERATIONS_TABLE) -> dict[str, int]:
        return Counter(reasons(rows, table).drop_null().to_pylist())

    assert refused(synthetic()) == {}
    assert refused(checks(synthetic()), CHECKS_TABLE) == {}
    found = refused(with_defects(synthetic(), WORKLOAD, 0))
    assert sum(found.values()) / COUNT == share(0.25)
    assert len(found) == 10
