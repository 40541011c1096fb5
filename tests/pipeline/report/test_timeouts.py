"""The data of the chart of timeouts, and their intervals in words."""

from __future__ import annotations

import pytest

from purgatory.pipeline.report.timeouts import interval, readings, timeout
from tests.pipeline.report.sample_findings import FETCH, PRODUCE, timeouts, verdict


def test_timeouts_are_in_the_order_of_the_kinds() -> None:
    rows = [*timeouts(), *timeouts(key="k"), *timeouts(PRODUCE)]
    points = readings(rows, [], ["Produce in produce", "Fetch in fetch"], {"50 %": "#111111"})["datasets"]

    assert [(point["series"], point["share"]) for point in points["timeouts"]] == [
        (name, share)
        for name in ("Produce in produce", "Fetch in fetch")
        for share in ("50 %", "90 %", "99 %")
    ]


def test_an_unidentifiable_timeout_is_not_drawn_as_a_timeout() -> None:
    spec = readings(timeouts(), [], ["Fetch in fetch"], {})
    known, open_above, unknown = spec["datasets"]["timeouts"]

    assert (known["timeout"], known["followed"], known["high"]) == (1_000, None, 1_100)
    assert (open_above["timeout"], open_above["high"]) == (3_000, 4_000)
    assert (unknown["timeout"], unknown["followed"], unknown["naive_text"]) == (None, 4_000, None)


def test_a_known_timeout_is_a_dot_and_an_unknown_one_an_arrow() -> None:
    layers = readings(timeouts(), [], ["Fetch in fetch"], {})["layer"]

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
    spec = readings(timeouts(), verdicts, names, {})

    assert [(tick["series"], tick["at"]) for tick in spec["datasets"]["present"]] == [
        ("Fetch in fetch", 1_000)
    ]
    assert spec["layer"][-1]["mark"]["type"] == "tick"


@pytest.mark.parametrize(
    ("number", "text", "bounds"),
    [(0, "1.00 ms", "900 µs to 1.10 ms"), (1, "3.00 ms", "2.50 ms to > 4.00 ms"), (2, "> 4.00 ms", "")],
)
def test_a_timeout_is_printed_with_its_interval(number: int, text: str, bounds: str) -> None:
    row = timeouts(FETCH)[number]

    assert (timeout(row), interval(row)) == (text, bounds)
