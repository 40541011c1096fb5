"""The ranking of keys."""

from __future__ import annotations

from typing import Any

from purgatory.pipeline.summarize.hottest_keys import hottest_keys


def ranked(frame: Any, by: str) -> list[tuple[object, ...]]:
    rows = frame.where(frame["by"] == by).orderBy("purgatory", "rank").collect()
    return [(row["purgatory"], row["rank"], row["key"], row[by]) for row in rows]


def test_keys_are_ranked_by_each_measure_in_their_purgatory(operations: Any) -> None:
    frame = hottest_keys(
        operations(
            *[{"keys": ["many"], "waited_us": 1, "tries": 1}] * 3,
            {"keys": ["long"], "waited_us": 100, "tries": 1},
            *[{"keys": ["tried"], "waited_us": 2, "tries": 9}] * 2,
            {"keys": ["many"], "waited_us": 5, "tries": 1, "purgatory": "produce"},
        ),
        up_to=2,
    ).cache()

    assert ranked(frame, "operations") == [
        ("fetch", 1, "many", 3),
        ("fetch", 2, "tried", 2),
        ("produce", 1, "many", 1),
    ]
    assert ranked(frame, "waited_us") == [
        ("fetch", 1, "long", 100),
        ("fetch", 2, "tried", 4),
        ("produce", 1, "many", 5),
    ]
    assert ranked(frame, "wasted_tries") == [("fetch", 1, "tried", 16)]
    frame.unpersist()


def test_a_try_is_wasted_unless_it_completed_the_operation(operations: Any) -> None:
    frame = hottest_keys(
        operations(
            {"keys": ["a"], "tries": 4, "outcome": "completed"},
            {"keys": ["b"], "tries": 4, "outcome": "expired"},
            {"keys": ["c"], "tries": 1, "outcome": "completed"},
        ),
        up_to=10,
    )

    assert ranked(frame, "wasted_tries") == [("fetch", 1, "b", 4), ("fetch", 2, "a", 3)]


def test_an_operation_counts_once_for_each_of_its_keys_and_ties_are_ranked_by_name(
    operations: Any,
) -> None:
    frame = hottest_keys(operations({"keys": ["b", "a", "b"]}, {"keys": ["c", "a"]}), up_to=2)

    assert ranked(frame, "operations") == [("fetch", 1, "a", 2), ("fetch", 2, "b", 1)]
