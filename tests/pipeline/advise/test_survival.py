"""Survival curves and timeouts, compared with the textbook and with lifelines."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from types import SimpleNamespace as Row
from typing import Any

import pyarrow as pa
import pytest
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time

from purgatory.observer import OUTCOMES
from purgatory.pipeline.advise import survival
from tests.pipeline.advise.waits import Wait, curves_of, waited

# The values of each column, in the order of the waits.
Curve = dict[str, list[Any]]

EXACT = 1e-9
SHARES = (0.1, 0.5, 0.9, 0.99)

# At 2 one operation completes and one expires, which is still at risk when the other completes.
WORKED = [
    ("worked", 1, "completed"),
    ("worked", 2, "completed"),
    ("worked", 2, "expired"),
    ("worked", 3, "cancelled"),
    ("worked", 5, "completed"),
    ("worked", 6, "failed"),
]


def drawn() -> list[Wait]:
    """Strata of all sizes, with many ties or many distinct waits."""
    draw = random.Random(5)
    strata = [
        (f"{number:02}", draw.choice([1, 2, 7, 40]), draw.choice([3, 30, 10**6])) for number in range(30)
    ]
    return [
        (stratum, draw.randrange(most), draw.choice([*OUTCOMES, *["completed"] * 4]))
        for stratum, size, most in strata
        for _ in range(size)
    ]


ALL = [
    *WORKED,
    *drawn(),
    *(("all censored", wait, outcome) for wait, outcome in enumerate(["expired", "cancelled", "failed"])),
    *(("all completed", wait, "completed") for wait in [4, 4, 5, 9, 9, 9]),
    *(("last completed", wait, "completed" if wait % 2 else "expired") for wait in range(10)),
    *(("at once", 0, "completed") for _ in range(3)),
    ("alone", 7, "completed"),
]


# Strata of many operations: the wait, the number that ended, and the number that completed. Most complete at
# once, twenty complete later, one after the other; some never do.
LATE = [(wait, 1, 1) for wait in range(2, 22)]
COUNTED = {
    "known": [(1, 19_980, 19_980), *LATE],
    "in vain": [(1, 19_980, 19_980), *LATE, (900, 5_000, 0)],
    "enough": [(1, 3_921, 3_921)],
    "too few": [(1, 3_920, 3_920)],
}


COUNTS = pa.schema(
    [
        *((name, pa.string()) for name in ("purgatory", "kind", "key")),
        *((name, pa.int64()) for name in ("waited_us", "ended", "completed", "expired")),
    ]
)


@pytest.fixture(scope="module")
def curves() -> pa.Table:
    counted = [
        {"purgatory": "fetch", "kind": name, "key": None, "expired": 0}
        | dict(zip(("waited_us", "ended", "completed"), each, strict=True))
        for name, ends in COUNTED.items()
        for each in ends
    ]
    found = curves_of(waited(*each) for each in ALL)
    own = survival.estimated(pa.Table.from_pylist(counted, COUNTS))
    return pa.concat_tables([found, own])


@pytest.fixture(scope="module")
def by_stratum(curves: pa.Table) -> dict[str, Curve]:
    rows = curves.sort_by("waited_us").to_pylist()
    return {
        stratum: {
            column: [row[column] for row in rows if row["kind"] == stratum] for column in curves.column_names
        }
        for stratum in {row["kind"] for row in rows} - COUNTED.keys()
    }


@pytest.fixture(scope="module")
def readings(curves: pa.Table) -> dict[tuple[str, float], Row]:
    """By stratum and share."""
    rows = survival.timeouts(SHARES, curves).to_pylist()
    return {(row["kind"], row["share"]): Row(**row) for row in rows}


def test_worked_example(by_stratum: dict[str, Curve]) -> None:
    curve = by_stratum["worked"]
    assert curve["waited_us"] == [1, 2, 3, 5, 6]
    assert curve["at_risk"] == [6, 5, 3, 2, 1]
    assert curve["ended"] == [1, 2, 1, 1, 1]
    assert curve["completed"] == [1, 1, 0, 1, 0]
    assert curve["expired"] == [0, 1, 0, 0, 0]
    assert curve["completed_running"] == [1, 2, 2, 3, 3]
    assert curve["survival"] == pytest.approx([5 / 6, 2 / 3, 2 / 3, 1 / 3, 1 / 3], abs=EXACT)
    # All wait for the first unit, five sixths for the next, two thirds for three more, a third for the last.
    areas = [1, 1 + 5 / 6, 1 + 5 / 6 + 2 / 3, 1 + 5 / 6 + 3 * 2 / 3, 1 + 5 / 6 + 3 * 2 / 3 + 1 / 3]
    assert curve["mean_wait_us"] == pytest.approx(areas, abs=EXACT)


def test_curve_interval_and_area_agree_with_lifelines(by_stratum: dict[str, Curve]) -> None:
    assert len(by_stratum) == 36
    for stratum, curve in by_stratum.items():
        fitted = fit(stratum)
        at = curve["waited_us"]
        assert curve["survival"] == pytest.approx(
            list(fitted.survival_function_.iloc[:, 0].loc[at]), abs=EXACT
        )
        # Where the curve is zero, the interval of lifelines is from one to one.
        above = [wait for wait, share in zip(at, curve["survival"], strict=True) if share > 0]
        for column, bounds in zip(("survival_low", "survival_high"), interval(fitted, above), strict=True):
            assert curve[column][: len(above)] == pytest.approx(bounds, abs=EXACT), (stratum, column)
        area = restricted_mean_survival_time(fitted, t=at[-1])
        assert curve["mean_wait_us"][-1] == pytest.approx(area, rel=EXACT)


def fit(stratum: str) -> KaplanMeierFitter:
    mine = [(wait, outcome == "completed") for name, wait, outcome in ALL if name == stratum]
    return KaplanMeierFitter().fit([wait for wait, _ in mine], [done for _, done in mine])


def interval(fitted: KaplanMeierFitter, waits: list[int]) -> tuple[list[float], list[float]]:
    bounds = fitted.confidence_interval_.loc[waits]
    return list(bounds.iloc[:, 0]), list(bounds.iloc[:, 1])


def test_the_interval_is_null_where_all_operations_have_completed(by_stratum: dict[str, Curve]) -> None:
    for stratum in ("all completed", "last completed", "at once", "alone"):
        curve = by_stratum[stratum]
        assert curve["survival"][-1] == 0
        for bound in ("survival_low", "survival_high"):
            assert curve[bound][-1] is None


def test_the_curve_is_one_until_an_operation_completes(by_stratum: dict[str, Curve]) -> None:
    curve = by_stratum["all censored"]
    for column in ("survival", "survival_low", "survival_high"):
        assert curve[column] == [1.0, 1.0, 1.0]


def test_operations_expired_by_closing_their_purgatory_are_not_counted_as_expired() -> None:
    rows = [("expired", 1), ("expired", None), ("completed", None)]
    curve = curves_of(waited("a", 5, outcome, lateness_us=lateness) for outcome, lateness in rows)
    counts = curve.select(["kind", "waited_us", "ended", "completed", "expired"]).to_pylist()
    assert [tuple(row.values()) for row in counts] == [("a", 5, 3, 1, 1)]


def test_a_timeout_is_the_first_wait_by_which_the_share_completes(
    readings: dict[tuple[str, float], Row],
) -> None:
    assert len(readings) == (36 + len(COUNTED)) * len(SHARES)
    for stratum, mine in groupby(sorted(ALL), key=itemgetter(0)):
        waits = [(wait, outcome == "completed") for _, wait, outcome in mine]
        exact = estimate(waits)
        completed = sorted(wait for wait, done in waits if done)
        for share in SHARES:
            row = readings[stratum, share]
            wanted = Fraction(str(share))
            assert row.operations == len(waits)
            assert row.followed_us == max(wait for wait, _ in waits)
            assert row.known_share == pytest.approx(float(1 - exact[-1][1]), abs=EXACT)
            assert row.timeout_us == next((wait for wait, left in exact if 1 - left >= wanted), None)
            rank = math.ceil(wanted * len(completed))
            assert row.naive_us == (completed[rank - 1] if completed else None)


def test_a_curve_has_settled_when_at_most_a_thousandth_of_the_completions_may_come_later(
    readings: dict[tuple[str, float], Row],
) -> None:
    # If eleven come later, at most twenty do, with a confidence of 97.5 %: those that come after 10.
    assert {name: readings[name, 0.5].settled_us for name in COUNTED} == {
        "known": 10,
        "in vain": 10,
        "enough": 1,
        "too few": None,
    }
    assert readings["in vain", 0.5].waited_in_all_us == 19_980 + sum(range(2, 22)) + 900 * 5_000


def estimate(waits: list[tuple[int, bool]]) -> list[tuple[int, Fraction]]:
    """The product of the textbook, in fractions."""
    left = Fraction(1)
    curve = []
    for wait in sorted({wait for wait, _ in waits}):
        at_risk = sum(other >= wait for other, _ in waits)
        left *= 1 - Fraction(waits.count((wait, True)), at_risk)
        curve.append((wait, left))
    return curve


def test_the_interval_of_a_timeout_is_where_the_bounds_of_the_curve_cross_the_share(
    readings: dict[tuple[str, float], Row], by_stratum: dict[str, Curve]
) -> None:
    rows = [row for row in readings.values() if row.share == 0.5 and row.kind in by_stratum]
    assert any(row.timeout_high_us is not None for row in rows)
    for row in rows:
        curve = by_stratum[row.kind]

        def first(column: str, curve: Curve = curve) -> int | None:
            points = zip(curve["waited_us"], curve[column], strict=True)
            return next((wait for wait, bound in points if bound is not None and bound <= 0.5), None)

        assert row.timeout_high_us == first("survival_high")
        # The low bound ends where all have completed.
        low = [wait for wait in (first("survival_low"), first("survival")) if wait is not None]
        assert row.timeout_low_us == min(low, default=None)
