"""The data of survival curves, and of the timeouts that follow from them."""

from __future__ import annotations

from typing import Any

import pytest

from purgatory.pipeline.report import waits
from tests.pipeline.report.sample_findings import FETCH, PRODUCE, curve, timeouts, verdict

COLOURS = {"Fetch in fetch": "#111111", "Produce in produce": "#222222"}


def steps(spec: dict[str, Any], name: str) -> list[tuple[float, float]]:
    of_series = (step for step in spec["datasets"]["steps"] if step["series"] == name)
    return [(step["wait"], round(step["share"], 3)) for step in of_series]


def test_a_curve_begins_at_one_and_has_each_step() -> None:
    spec = waits.curves(curve(), COLOURS, log_share=False)

    assert steps(spec, "Fetch in fetch") == [(0.8, 1), (1, 0.9), (1_000, 0.9), (2_000, 0.514), (4_000, 0.514)]


def test_on_a_logarithmic_axis_a_curve_ends_before_zero() -> None:
    rows = curve(reaches_zero=True)
    plain, log = (waits.curves(rows, COLOURS, log_share=log) for log in (False, True))

    assert steps(plain, "Fetch in fetch")[-1] == (4_000, 0)
    assert steps(log, "Fetch in fetch")[-1] == (2_000, 0.514)


def test_a_step_counts_completed_and_censored_operations() -> None:
    (_, *after) = waits.curves(curve(), COLOURS, log_share=False)["datasets"]["steps"]

    assert [(step["completed"], step["censored"]) for step in after] == [(1, 0), (1, 2), (4, 2), (4, 6)]


def test_ticks_are_at_censored_waits() -> None:
    cuts = waits.curves(curve(), COLOURS, log_share=False)["datasets"]["cuts"]

    assert [cut["wait"] for cut in cuts] == [1_000, 4_000]


def test_ticks_close_together_are_merged_into_the_last() -> None:
    row = curve()[0]
    rows = [
        row | {"waited_us": 1_000 + at, "at_risk": 10 - at, "ended": 1, "completed_running": 0}
        for at in range(9)
    ]
    cuts = waits.curves(rows, COLOURS, log_share=False)["datasets"]["cuts"]

    assert [cut["wait"] for cut in cuts] == [1_008]


def test_the_shorter_of_two_curves_is_drawn_on_top() -> None:
    short = [row for row in curve() if row["waited_us"] < 4_000]
    spec = waits.curves([*short, *curve(PRODUCE)], COLOURS, log_share=False)

    assert list(dict.fromkeys(step["series"] for step in spec["datasets"]["steps"])) == [
        "Produce in produce",
        "Fetch in fetch",
    ]


def test_keys_and_kinds_without_a_colour_are_not_drawn() -> None:
    rows = [*curve(key="k"), *curve({"purgatory": "p", "kind": "K"})]

    assert waits.curves(rows, COLOURS, log_share=True)["datasets"] == {"steps": [], "cuts": []}


def test_timeouts_are_in_the_order_of_the_kinds() -> None:
    rows = [*timeouts(), *timeouts(key="k"), *timeouts(PRODUCE)]
    points = waits.timeouts(rows, [], ["Produce in produce", "Fetch in fetch"], {"50 %": "#111111"})[
        "datasets"
    ]

    assert [(point["series"], point["share"]) for point in points["timeouts"]] == [
        (name, share)
        for name in ("Produce in produce", "Fetch in fetch")
        for share in ("50 %", "90 %", "99 %")
    ]


def test_an_unidentifiable_timeout_is_not_drawn_as_a_timeout() -> None:
    spec = waits.timeouts(timeouts(), [], ["Fetch in fetch"], {})
    known, open_above, unknown = spec["datasets"]["timeouts"]

    assert (known["timeout"], known["followed"], known["high"]) == (1_000, None, 1_100)
    assert (open_above["timeout"], open_above["high"]) == (3_000, 4_000)
    assert (unknown["timeout"], unknown["followed"], unknown["naive_text"]) == (None, 4_000, None)


def test_a_known_timeout_is_a_dot_and_an_unknown_one_an_arrow() -> None:
    layers = waits.timeouts(timeouts(), [], ["Fetch in fetch"], {})["layer"]

    assert [
        (layer["mark"]["type"], layer["encoding"]["x"]["field"], layer["transform"][0]["filter"])
        for layer in layers
    ] == [
        ("rule", "low", "isValid(datum.timeout)"),
        ("point", "naive", "isValid(datum.naive)"),
        ("point", "timeout", "isValid(datum.timeout)"),
        ("point", "followed", "isValid(datum.followed)"),
    ]


def test_the_present_timeout_of_a_kind_is_a_tick() -> None:
    verdicts = [
        verdict(),
        verdict(key="k"),
        verdict(PRODUCE, present_us=None),
        verdict({"purgatory": "p", "kind": "K"}),
    ]
    names = ["Fetch in fetch", "Produce in produce"]
    spec = waits.timeouts(timeouts(), verdicts, names, {})

    assert [(tick["series"], tick["at"]) for tick in spec["datasets"]["present"]] == [
        ("Fetch in fetch", 1_000)
    ]
    assert spec["layer"][-1]["mark"]["type"] == "tick"


@pytest.mark.parametrize(
    ("number", "timeout", "interval"),
    [(0, "1.00 ms", "900 µs to 1.10 ms"), (1, "3.00 ms", "2.50 ms to > 4.00 ms"), (2, "> 4.00 ms", "")],
)
def test_a_timeout_is_printed_with_its_interval(number: int, timeout: str, interval: str) -> None:
    row = timeouts(FETCH)[number]

    assert (waits.timeout(row), waits.interval(row)) == (timeout, interval)
