"""The ranking of keys."""

from __future__ import annotations

from typing import Any

import pytest

from purgatory.pipeline.summarize.condensation import condensed
from purgatory.pipeline.summarize.hottest_keys import KEYS, hottest_keys

Ranking = list[tuple[int, str, int]]

# The operations of each purgatory. One job ranks the keys of all, because a job takes Spark a second.
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
}


@pytest.fixture(scope="module")
def ranked(operations: Any) -> dict[tuple[str, str], Ranking]:
    """The two highest keys of each purgatory by each measure: rank, name, amount."""
    frame = operations(*({"purgatory": name} | row for name, case in CASES.items() for row in case))
    rows = hottest_keys(KEYS.of(condensed(frame, KEYS)), up_to=2).orderBy("rank").collect()
    return {
        (purgatory, by): [
            (row["rank"], row["key"], row[by])
            for row in rows
            if (row["purgatory"], row["by"]) == (purgatory, by)
        ]
        for purgatory in CASES
        for by in ("operations", "waited_us", "wasted_tries")
    }


def test_keys_are_ranked_by_each_measure_in_their_purgatory(ranked: dict[tuple[str, str], Ranking]) -> None:
    assert ranked["measures", "operations"] == [(1, "many", 3), (2, "tried", 2)]
    assert ranked["measures", "waited_us"] == [(1, "long", 100), (2, "tried", 4)]
    assert ranked["measures", "wasted_tries"] == [(1, "tried", 16)]


def test_a_try_is_wasted_unless_it_completed_the_operation(ranked: dict[tuple[str, str], Ranking]) -> None:
    assert ranked["tries", "wasted_tries"] == [(1, "b", 4), (2, "a", 3)]


def test_an_operation_counts_once_for_each_of_its_keys_and_ties_are_ranked_by_name(
    ranked: dict[tuple[str, str], Ranking],
) -> None:
    assert ranked["ties", "operations"] == [(1, "a", 2), (2, "b", 1)]
