"""One metric at several sizes."""

from __future__ import annotations

import pytest

from benchmarks import sizes
from benchmarks.question import Sample


def ten_per_size(size: int) -> Sample:
    return {"us": size / 10, "held": 3.0 * size}


def test_the_first_size_is_the_first_column_and_the_others_ascend() -> None:
    columns = sizes.columns("us", (1_000, 100_000, 10))
    assert [column.heading for column in columns] == ["n = 1,000", "n = 10", "n = 100,000", "growth"]
    assert [column.metric for column in columns] == ["us_1000", "us_10", "us_100000", "us_growth"]
    assert [column.spread for column in columns] == [True, False, False, False]


def test_with_one_size_nothing_grows() -> None:
    assert [column.heading for column in sizes.columns("us", (1_000,))] == ["n = 1,000"]
    assert sizes.measured((40,), ten_per_size, growing=("us",)) == {"us_40": 4.0, "held_40": 120.0}


def test_growth_is_from_the_smallest_to_the_largest() -> None:
    sample = sizes.measured((40, 20, 80), ten_per_size, growing=("us",))
    assert (sample["us_growth"], "held_growth" in sample) == (4.0, False)
    assert list(sample)[:2] == ["us_20", "held_20"]


def test_what_is_too_large_is_left_out_and_so_is_the_growth() -> None:
    sample = sizes.measured((40, 20, 80), ten_per_size, growing=("us",), at_most=40)
    assert sample.keys() == {"us_20", "held_20", "us_40", "held_40"}


def test_small_sizes_are_measured_several_times_and_count_with_their_mean() -> None:
    asked: list[int] = []

    def measure(size: int) -> Sample:
        asked.append(size)
        return {"us": float(len(asked))}

    sample = sizes.measured((100, 30), measure, growing=(), at_least=90)
    assert asked == [30, 30, 30, 100]
    assert sample == {"us_30": pytest.approx(2.0), "us_100": 4.0}
