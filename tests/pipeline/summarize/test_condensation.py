"""The part of `summarize` that runs in the workers, without Spark, compared with models in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from purgatory.journal.schema import COMPLETED, OPERATIONS
from purgatory.pipeline.summarize import condensation
from purgatory.pipeline.summarize.changes import CHANGES, sweep
from purgatory.pipeline.summarize.condensation import Part, condense
from purgatory.pipeline.summarize.hottest_keys import KEYS
from purgatory.pipeline.summarize.minutes import COUNTED
from purgatory.pipeline.transforms.instants import MINUTE_US
from purgatory.pipeline.transforms.quantiles import bins
from tests.pipeline.journals import NOON, Row, operation, segment

NOON_US = round(NOON.timestamp()) * 1_000_000


def operations(count: int) -> list[Row]:
    draw = random.Random(count)
    return [
        operation(
            number,
            purgatory=draw.choice("pq"),
            kind=draw.choice("abc"),
            keys=[draw.choice("klm") for _ in range(draw.randrange(4))],
            started=NOON_US + draw.randrange(300) * 1_000_000,
            waited_us=draw.choice((0, 1, draw.randrange(5) * 1_000_000, draw.randrange(200_000_000))),
            lateness_us=draw.choice((None, draw.randrange(5_000))),
            outcome=draw.choice((COMPLETED, "expired")),
            tries=draw.randint(1, 9),
        )
        for number in range(count)
    ]


def condensed(part: Part, rows: list[Row], *, batch_rows: int = 1000) -> pa.Table:
    """The part of these operations, which come in batches."""
    batches = segment(OPERATIONS, rows).select(part.reads).to_batches(max_chunksize=batch_rows)
    condensed = [batch.column(part.name).flatten() for batch in condense([part], iter(batches))]
    return pa.Table.from_batches([pa.record_batch(each, part.fields) for each in condensed], part.fields)


@pytest.fixture(params=[(1000, 1000), (7, 3), (5, 13)], ids=["one chunk", "several batches", "slices"])
def batch_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The rows of a batch, with more, fewer or as many in a chunk."""
    chunk, batch = request.param
    monkeypatch.setattr(condensation, "_CHUNK", chunk)
    return int(batch)


def test_operations_that_are_alike_are_counted(batch_rows: int) -> None:
    rows = operations(100)
    found, tries = Counter[Any](), Counter[Any]()
    for row in condensed(COUNTED, rows, batch_rows=batch_rows).to_pylist():
        number, tried = row.pop("operations"), row.pop("tries")
        found[tuple(row.values())] += number
        tries[tuple(row.values())] += tried
    alike = [
        (
            (ended := row["started"] + row["waited_us"]) - ended % MINUTE_US,
            *(row[name] for name in ("purgatory", "kind", "outcome")),
            binned(row["waited_us"]),
            None if row["lateness_us"] is None else binned(row["lateness_us"]),
        )
        for row in rows
    ]
    assert found == Counter(alike)
    assert tries.total() == sum(row["tries"] for row in rows)


def binned(amount: int) -> int:
    (found,) = bins(np.array([amount])).tolist()
    return int(found)


def test_an_operation_counts_once_for_each_of_its_keys(batch_rows: int) -> None:
    rows = operations(100)
    found: Counter[Any] = Counter()
    for row in condensed(KEYS, rows, batch_rows=batch_rows).to_pylist():
        for measure in ("operations", "waited_us", "wasted_tries"):
            found[row["purgatory"], row["key"], measure] += row[measure]
    expected: Counter[Any] = Counter()
    for row in rows:
        for key in set(row["keys"]):
            expected[row["purgatory"], key, "operations"] += 1
            expected[row["purgatory"], key, "waited_us"] += row["waited_us"]
            expected[row["purgatory"], key, "wasted_tries"] += row["tries"] - (row["outcome"] == COMPLETED)
    assert found == expected


def test_operations_without_keys_count_for_none() -> None:
    assert condensed(KEYS, [operation(keys=[])]).num_rows == 0


def test_the_changes_of_a_minute_are_swept_in_the_order_of_time(batch_rows: int) -> None:
    rows = operations(100)
    batches = condensed(CHANGES, rows, batch_rows=batch_rows).to_batches(max_chunksize=11)
    found = {
        (row["purgatory"], row["kind"], row["minute_us"]): row
        for batch in sweep(iter(batches))
        for row in batch.to_pylist()
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


def test_without_changes_there_is_nothing_to_sweep() -> None:
    assert list(sweep(iter([]))) == []


def test_a_row_belongs_to_one_part() -> None:
    batches = segment(OPERATIONS, operations(10)).to_batches()
    rows = pa.Table.from_batches(condense([COUNTED, CHANGES], iter(batches))).to_pylist()
    assert {(row["counted"] is None, row["changes"] is None) for row in rows} == {
        (True, False),
        (False, True),
    }
