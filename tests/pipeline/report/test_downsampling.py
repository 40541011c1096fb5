"""Downsampled curves."""

from __future__ import annotations

import random
from math import log10
from typing import Any, Final

import pyarrow as pa
import pytest

from purgatory.pipeline.report.downsampling import DECADE, HEIGHT, downsampled

_COLUMNS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("purgatory", "kind", "key")),
        *((name, pa.int64()) for name in ("waited_us", "at_risk", "ended")),
        ("survival", pa.float64()),
    ]
)
MANY: Final = 12_000

Curve = list[tuple[int, float]]


def rows(kind: str, waits: list[int]) -> list[tuple[Any, ...]]:
    """A curve of distinct waits, each of which completed."""
    waits = sorted(set(waits))
    count = len(waits)
    return [
        ("fetch", kind, None, wait, count - at, 1, (count - at - 1) / count) for at, wait in enumerate(waits)
    ]


@pytest.fixture(scope="module")
def curves() -> dict[str, tuple[Curve, Curve]]:
    """For each kind, its curve before and after downsampling."""
    wait = random.Random(5)
    long = rows("Long", [round(wait.lognormvariate(11, 2)) for _ in range(MANY)])
    censored = [
        (*row[:3], row[3] * 3, row[4] + 500, *row[5:]) for row in rows("Censored", [0, *range(1, 50)])
    ]
    # In the same cell as the row before.
    last = ("fetch", "Censored", None, censored[-1][3] + 1, 500, 500, censored[-1][6])
    everything = [*long, *censored, last]
    shuffled = wait.sample(everything, len(everything))
    columns = map(pa.array, zip(*shuffled, strict=True), _COLUMNS.types)
    left = downsampled(pa.Table.from_arrays(list(columns), schema=_COLUMNS)).sort_by("waited_us").to_pylist()
    return {
        kind: (
            [(row[3], row[6]) for row in everything if row[1] == kind],
            [(row["waited_us"], row["survival"]) for row in left if row["kind"] == kind],
        )
        for kind in ("Long", "Censored")
    }


def test_a_long_curve_keeps_as_many_points_as_a_screen_can_show(
    curves: dict[str, tuple[Curve, Curve]],
) -> None:
    whole, left = curves["Long"]

    assert len(whole) > 10 * 1_000 > 10 * len(left)
    assert set(left) <= set(whole)


def test_dropped_rows_are_less_than_a_cell_from_a_kept_row(curves: dict[str, tuple[Curve, Curve]]) -> None:
    whole, left = curves["Long"]
    kept = dict(left)
    shown = left[0]
    for wait, share in whole:
        shown = (wait, share) if wait in kept else shown
        assert shown[1] - share <= 1 / HEIGHT
        assert wait <= shown[0] * 10 ** (1 / DECADE)
        assert share == shown[1] == 0 or log10(shown[1] / share) <= 1 / DECADE


def test_a_short_curve_keeps_its_ends(curves: dict[str, tuple[Curve, Curve]]) -> None:
    whole, left = curves["Censored"]

    assert (left[0], left[-1]) == (whole[0], whole[-1])
