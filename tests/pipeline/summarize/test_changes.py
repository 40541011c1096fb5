"""The changes of the number of pending operations, compared with a model in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.sql import MINUTE_US
from purgatory.pipeline.summarize.pending import CHANGES
from tests.pipeline.journals import NOON, Row, operation, segment
from tests.pipeline.parts import result

NOON_US = round(NOON.timestamp()) * 1_000_000


def operations(count: int) -> list[Row]:
    draw = random.Random(count)
    return [
        operation(
            number,
            purgatory=draw.choice("pq"),
            kind=draw.choice("abc"),
            started=NOON_US + draw.randrange(300) * 1_000_000,
            waited_us=draw.choice((0, 1, draw.randrange(5) * 1_000_000, draw.randrange(200_000_000))),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("chunk", [1000, 13, 1], ids=["one chunk", "several chunks", "single rows"])
def test_the_changes_of_a_minute_are_swept_in_the_order_of_time(chunk: int) -> None:
    rows = operations(100)
    found = {
        (row["purgatory"], row["kind"], row["minute_us"]): row
        for row in result(CHANGES, segment(OPERATIONS, rows), chunk=chunk).to_pylist()
    }
    changes: dict[Any, Counter[int]] = {}
    for row in rows:
        began = row["started"]
        for at, change in ((began, 1), (began + row["waited_us"], -1)):
            group = row["purgatory"], row["kind"], at - at % MINUTE_US
            changes.setdefault(group, Counter())[at] += change
    assert set(found) == set(changes)
    for group, of_minute in changes.items():
        row = found[group]
        instants = sorted(of_minute)
        sums = [sum(of_minute[each] for each in instants if each <= at) for at in instants]
        assert (row["first_us"], row["last_us"]) == (instants[0], instants[-1])
        assert (row["net"], row["most"]) == (sums[-1], max(sums))
        end = row["minute_us"] + MINUTE_US
        assert row["area_us"] == sum(change * (end - at) for at, change in of_minute.items())


def test_without_operations_there_are_no_changes() -> None:
    assert result(CHANGES, segment(OPERATIONS, [])).num_rows == 0
