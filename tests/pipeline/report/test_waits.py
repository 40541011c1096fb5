"""The data of survival curves."""

from __future__ import annotations

from typing import Any

import pytest

from purgatory.pipeline.report.waits import curves
from tests.pipeline.report.sample_findings import PRODUCE, curve

COLOURS = {"Fetch in fetch": "#111111", "Produce in produce": "#222222"}


def steps(spec: dict[str, Any], name: str) -> list[tuple[float, float]]:
    of_series = (step for step in spec["datasets"]["steps"] if step["series"] == name)
    return [(step["wait"], round(step["share"], 3)) for step in of_series]


def test_a_curve_begins_at_one_and_has_each_step() -> None:
    spec = curves(curve(), COLOURS, log_share=False)

    assert steps(spec, "Fetch in fetch") == [(0.8, 1), (1, 0.9), (1_000, 0.9), (2_000, 0.514), (4_000, 0.514)]


def test_a_chart_begins_where_the_first_curve_leaves_one() -> None:
    begins = [row | {"survival": 1.0, "completed_running": 0} for row in curve(unit_us=10)[:2]]
    rows = [*begins, *curve(unit_us=1_000)[2:], *curve(PRODUCE, unit_us=5_000)[2:]]
    spec = curves(rows, COLOURS, log_share=False)

    assert steps(spec, "Fetch in fetch")[:2] == [(1_600, 1), (2_000, 0.514)]
    assert steps(spec, "Produce in produce")[:2] == [(1_600, 1), (10_000, 0.514)]
    assert min(cut["wait"] for cut in spec["datasets"]["cuts"]) >= 2_000
    (low, _) = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low == pytest.approx(1_600)


def test_on_a_logarithmic_axis_a_curve_ends_before_zero() -> None:
    rows = curve(reaches_zero=True)
    plain, log = (curves(rows, COLOURS, log_share=log) for log in (False, True))

    assert steps(plain, "Fetch in fetch")[-1] == (4_000, 0)
    assert steps(log, "Fetch in fetch")[-1] == (2_000, 0.514)


def test_a_step_counts_completed_and_censored_operations() -> None:
    (_, *after) = curves(curve(), COLOURS, log_share=False)["datasets"]["steps"]

    assert [(step["completed"], step["censored"]) for step in after] == [(1, 0), (1, 2), (4, 2), (4, 6)]


def test_a_step_has_its_shares_in_words() -> None:
    unsure = [row | {"survival": 0.9, "survival_low": None, "survival_high": 0.99891} for row in curve()]
    step = curves(unsure, COLOURS, log_share=False)["datasets"]["steps"][1]

    assert (step["share_text"], step["low_text"], step["high_text"]) == ("90 %", "unknown", "99.89 %")


def test_ticks_are_at_censored_waits() -> None:
    cuts = curves(curve(), COLOURS, log_share=False)["datasets"]["cuts"]

    assert [cut["wait"] for cut in cuts] == [1_000, 4_000]


def test_ticks_close_together_are_merged_into_the_last() -> None:
    row = curve()[0]
    rows = [
        row | {"waited_us": 1_000 + at, "at_risk": 10 - at, "ended": 1, "completed_running": 0}
        for at in range(9)
    ]
    cuts = curves(rows, COLOURS, log_share=False)["datasets"]["cuts"]

    assert [cut["wait"] for cut in cuts] == [1_008]


def test_the_shorter_of_two_curves_is_drawn_on_top() -> None:
    short = [row for row in curve() if row["waited_us"] < 4_000]
    spec = curves([*short, *curve(PRODUCE)], COLOURS, log_share=False)

    assert list(dict.fromkeys(step["series"] for step in spec["datasets"]["steps"])) == [
        "Produce in produce",
        "Fetch in fetch",
    ]


def test_keys_and_kinds_without_a_colour_are_not_drawn() -> None:
    rows = [*curve(key="k"), *curve({"purgatory": "p", "kind": "K"})]

    assert curves(rows, COLOURS, log_share=True)["datasets"] == {"steps": [], "cuts": []}
