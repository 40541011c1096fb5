"""The ranking of keys."""

from __future__ import annotations

from typing import Any

import pytest

from purgatory.pipeline.summarize.hottest_keys import hottest_keys, ranked
from tests.pipeline.parts import result

Ranking = list[tuple[int, str, int]]

# The operations of each purgatory.
CASES: dict[str, list[dict[str, Any]]] = {
    "measures": [
        *[{"keys": ["many"], "waited_us": 1, "tries": 1}] * 3,
        {"keys": ["long"], "waited_us": 100, "tries": 1},
        *[{"keys": ["tried"], "waited_us": 2, "tries": 9}] * 2,
    ],
    "tries": [
        {"keys": ["a"], "tries": 4, "outcome": "completed"},
        {"keys": ["b"], "tries": 4, "outcome": "expired"},
        {"keys": ["c"], "tries": 1, "outcome": "completed"},
    ],
    "ties": [{"keys": ["b", "a", "b"]}, {"keys": ["c", "a"]}],
    "no key": [{"keys": []}, {"keys": ["a"]}, {"keys": []}],
}


@pytest.fixture(scope="module")
def ranking(operations: Any) -> dict[tuple[str, str], Ranking]:
    """The two highest keys of each purgatory by each measure: rank, name, amount."""
    rows = operations(*({"purgatory": name} | row for name, case in CASES.items() for row in case))
    found = ranked(result(hottest_keys(up_to=2), rows), up_to=2).sort_by("rank").to_pylist()
    return {
        (purgatory, by): [
            (row["rank"], row["key"], row[by])
            for row in found
            if (row["purgatory"], row["by"]) == (purgatory, by)
        ]
        for purgatory in CASES
        for by in ("operations", "waited_us", "wasted_tries")
    }


def test_keys_are_ranked_by_each_measure_in_their_purgatory(ranking: dict[tuple[str, str], Ranking]) -> None:
    assert ranking["measures", "operations"] == [(1, "many", 3), (2, "tried", 2)]
    assert ranking["measures", "waited_us"] == [(1, "long", 100), (2, "tried", 4)]
    assert ranking["measures", "wasted_tries"] == [(1, "tried", 16)]


def test_a_try_is_wasted_unless_it_completed_the_operation(ranking: dict[tuple[str, str], Ranking]) -> None:
    assert ranking["tries", "wasted_tries"] == [(1, "b", 4), (2, "a", 3)]


def test_an_operation_counts_once_for_each_of_its_keys_and_ties_are_ranked_by_name(
    ranking: dict[tuple[str, str], Ranking],
) -> None:
    assert ranking["ties", "operations"] == [(1, "a", 2), (2, "b", 1)]


def test_an_operation_without_a_key_counts_for_none(ranking: dict[tuple[str, str], Ranking]) -> None:
    assert ranking["no key", "operations"] == [(1, "a", 1)]
