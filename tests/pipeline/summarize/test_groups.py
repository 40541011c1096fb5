"""Groups of rows, with their sums and quantiles."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from purgatory.pipeline.summarize.groups import Groups


def test_rows_that_are_equal_in_all_columns_are_a_group() -> None:
    rows = pa.table({"a": ["x", "y", "x", "x"], "b": [1, 1, 2, 1], "c": [1, 2, 3, 4]})
    groups = Groups(rows, ("a", "b"))
    assert groups.rows.take(pa.array(groups.number)) == rows.select(("a", "b"))
    amounts = rows["c"].to_numpy()
    sums = groups.rows.append_column("sum", pa.array(groups.sum(amounts)))
    assert sorted(map(tuple, (row.values() for row in sums.to_pylist()))) == [
        ("x", 1, 5),
        ("x", 2, 3),
        ("y", 1, 2),
    ]
    assert sorted(groups.highest(amounts).tolist()) == [2, 3, 4]
    assert repr(groups) == "<Groups: 3 by a, b>"


def test_a_quantile_is_that_of_all_amounts_as_often_as_they_occur() -> None:
    draw = random.Random(4)
    rows = [(draw.choice("abc"), draw.randrange(50), draw.randrange(1, 4)) for _ in range(200)]
    group, amount, count = zip(*rows, strict=True)
    groups = Groups(pa.table({"group": group}), ("group",))
    named = {f"{share}": share for share in (0, 0.3, 0.5, 0.99, 1)}
    found = groups.quantiles(np.array(amount), np.array(count), named)
    for number, name in enumerate(groups.rows["group"].to_pylist()):
        own = [each for of, each, times in rows if of == name for _ in range(times)]
        for share in named:
            assert found[share][number].as_py() == pytest.approx(np.quantile(own, float(share)))


def test_a_group_without_amounts_has_no_quantile() -> None:
    rows = pa.table({"group": ["a", "b", "c"]})
    found = Groups(rows, ("group",)).quantiles(np.array([5, 6, 7]), np.array([0, 1, 0]), {"half": 0.5})
    assert found["half"].to_pylist() == [None, 6, None]


def test_no_rows_are_no_groups() -> None:
    groups = Groups(pa.table({"group": pa.array([], pa.string())}), ("group",))
    nothing = np.array([], np.int64)
    assert (len(groups), len(groups.sum(nothing)), len(groups.highest(nothing))) == (0, 0, 0)
    assert len(groups.quantiles(nothing, nothing, {"half": 0.5})["half"]) == 0
