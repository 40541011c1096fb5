"""Strata: the groups of operations that get advice, and their timeouts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.advise.strata import STRATIFIED, present_timeouts
from purgatory.pipeline.sql import select
from tests.pipeline.advise.waits import NO_KEYS
from tests.pipeline.journals import operation, segment
from tests.pipeline.parts import result


def test_an_operation_is_in_the_stratum_of_its_kind_and_of_each_of_its_hot_keys() -> None:
    operations = segment(
        OPERATIONS,
        [
            operation(purgatory="fetch", kind="Fetch", keys=["hot", "hot", "cold"], waited_us=1),
            operation(purgatory="fetch", kind="Join", keys=["hot", "warm"], waited_us=2),
            operation(purgatory="produce", kind="P", keys=["hot"], waited_us=3),
        ],
    )
    hot = pa.table({"purgatory": ["fetch", "fetch"], "key": ["hot", "warm"]})

    rows = select(f"SELECT purgatory, kind, key, waited_us FROM ({STRATIFIED})", operations, hot=hot)

    assert sorted((tuple(row.values()) for row in rows.to_pylist()), key=str) == sorted(
        [
            ("fetch", "Fetch", None, 1),
            ("fetch", "Fetch", "hot", 1),
            ("fetch", "Join", None, 2),
            ("fetch", "Join", "hot", 2),
            ("fetch", "Join", "warm", 2),
            ("produce", "P", None, 3),
        ],
        key=str,
    )


def test_the_most_frequent_timeouts_come_first_and_the_longest_of_equally_frequent_ones() -> None:
    timeouts: dict[str, list[Any]] = {"a": [5, 5, 5, 1, 2, 2, None], "b": [None, None, 7], "c": [1, 2, None]}
    operations = [operation(kind=kind, timeout_us=each) for kind, own in timeouts.items() for each in own]

    rows = result(present_timeouts(NO_KEYS, up_to=3), segment(OPERATIONS, operations)).to_pylist()

    found = [(row["kind"], row["rank"], row["timeout_us"], row["operations"]) for row in rows]
    assert sorted(found, key=lambda each: each[:2]) == [
        ("a", 1, 5, 3),
        ("a", 2, 2, 2),
        ("a", 3, None, 1),
        ("b", 1, None, 2),
        ("b", 2, 7, 1),
        ("c", 1, None, 1),
        ("c", 2, 2, 1),
        ("c", 3, 1, 1),
    ]
