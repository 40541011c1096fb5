"""The charts of each section."""

from __future__ import annotations

from datetime import timedelta

import pytest

from purgatory.pipeline.report import markup
from purgatory.pipeline.report.history import fan_out, history, length
from purgatory.pipeline.report.hot_keys import MAX_BARS
from purgatory.pipeline.report.hot_keys import hot_keys as hot_keys_section
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.report.page import sections
from purgatory.pipeline.report.trade_off import wheel
from purgatory.pipeline.report.waits import waits
from tests.pipeline.report.sample_findings import (
    HOSTILE,
    MINUTE,
    NOON,
    advice,
    checks,
    curve,
    everything,
    findings,
    hot_keys,
    minute,
    recommendation,
    settings,
    summary,
)
from tests.pipeline.report.section_text import names, words


def test_of_many_kinds_those_with_the_most_operations_are_drawn() -> None:
    many = [minute(0, {"purgatory": "p", "kind": f"K{n}"}, operations=n + 4) for n in range(8)]
    found = findings(**summary(*many, pending=[]), **advice(curves=curve()))

    assert [mark.text for mark in waits(found).charts[0].legend][:2] == ["K7 in p", "K6 in p"]
    for section in (waits(found), history(found)):
        assert "The charts show 6 of 8 kinds" in words(section)


@pytest.mark.parametrize(
    ("chart", "name"),
    [
        ("survival", "Fetch in fetch: 51.42 % still wait after 4.00 ms; Produce in produce: 0 % still wait"),
        ("timeouts-chart", "Fetch in fetch, 50 % complete: by a timeout of 1.00 ms; Fetch in fetch, 90 %"),
        ("ended-0", "completed: at most 2, 2026-03-01 12:00 to 12:01 UTC; expired: at most 1, "),
        ("waited", "Fetch in fetch, 99 %: at most 2.00 ms, 2026-03-01 12:00 to 12:01 UTC; "),
        ("pending", "Fetch in fetch, at most: at most 3, "),
        ("keys-operations", "</script><script>alert(1)</script>: 8; b: 7"),
        ("wheel-0", "chosen, tick 5.00 ms, 256 slots: 9 wake-ups, 0 moves, late by 4.95 ms; default, tick "),
    ],
)
def test_the_name_of_a_chart_is_what_it_shows_in_one_line(chart: str, name: str) -> None:
    charts = {figure.name: figure for section in sections(everything()) for figure in section.charts}

    assert charts[chart].spec["description"].startswith(name)
    assert "The same in words" in markup.figure(charts[chart])


def test_all_charts_have_different_names() -> None:
    names = [figure.spec["description"] for section in sections(everything()) for figure in section.charts]

    # The two charts of the curves show the same.
    assert len(set(names)) == len(names) - 1


def test_of_many_purgatories_those_with_the_most_checks_are_drawn() -> None:
    rows = [checks(0, f"p{n}") | {"checks": n + 1} for n in range(8)]
    (figure,) = fan_out(findings(**summary(minute(0), fan_out=rows))).charts

    assert "The charts show 6 of 8 purgatories" in figure.note
    assert figure.legend[0].text == "p7"


@pytest.fixture(scope="module")
def steps_of_any_length() -> Section:
    """Five minutes, a quarter of one, and an instant. No operation was late."""
    lengths = (5 * MINUTE, MINUTE / 4, 0 * MINUTE)
    rows = [minute(0, lateness_p99_us=None) | {"until": NOON + length} for length in lengths]
    return history(findings(**summary(*rows)))


def test_without_late_operations_there_is_no_chart_of_lateness(steps_of_any_length: Section) -> None:
    assert "late" not in names(steps_of_any_length)


def test_counts_are_per_minute_for_any_length_of_step(steps_of_any_length: Section) -> None:
    (figure,) = (each for each in steps_of_any_length.charts if each.name == "ended-0")
    heights = [part["high"] - part["low"] for part in figure.spec["datasets"]["parts"]]

    # Less than a second counts as one.
    assert heights == pytest.approx([0.4, 0.2, 0.2, 8, 4, 4, 120, 60, 60])


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (1, "1 minute"),
        (30, "30 minutes"),
        (60, "1 hour"),
        (480, "8 hours"),
        (1_440, "1 day"),
        (4_320, "3 days"),
    ],
)
def test_the_length_of_a_step_is_in_its_longest_unit(minutes: int, text: str) -> None:
    assert length(timedelta(minutes=minutes)) == text


def test_keys_of_several_purgatories_are_named_with_their_purgatory() -> None:
    rows = [*hot_keys(), hot_keys()[1] | {"purgatory": "produce", "operations": 99}]
    (bars,) = (
        figure.spec["datasets"]["keys"]
        for figure in hot_keys_section(findings(**summary(minute(0), hottest_keys=rows))).charts
        if figure.name == "keys-operations"
    )

    assert [bar["name"] for bar in bars] == ["b in produce", f"{HOSTILE} in fetch", "b in fetch"]


def test_only_the_first_bars_are_drawn() -> None:
    rows = [hot_keys()[1] | {"key": str(n), "operations": n} for n in range(1, 30)]
    (figure,) = hot_keys_section(findings(**summary(minute(0), hottest_keys=rows))).charts
    bars = figure.spec["datasets"]["keys"]

    assert len(bars) == MAX_BARS
    assert (bars[0]["name"], bars[0]["text"]) == ("29", "29")


def test_a_dot_of_the_trade_off_has_its_setting() -> None:
    (figure,) = wheel(findings(settings=settings(), recommendations=[recommendation()])).charts
    default, worse, chosen = figure.spec["datasets"]["settings"]

    assert default["setting"] == "tick 1.00 ms, 60 slots"
    assert [(each["default"], each["pareto"], each["chosen"]) for each in (default, worse, chosen)] == [
        (True, True, False),
        (False, False, False),
        (False, True, True),
    ]
    assert (chosen["work"], chosen["late"], chosen["late_text"]) == (9, 4_950, "4.95 ms")
    assert "The replay has 8 of 12 operations with a timeout, 2026-03-01 12:00 to 12:03 UTC" in figure.note


def test_the_default_can_be_the_recommendation() -> None:
    chosen = recommendation() | {"tick_us": 1_000, "wheel_size": 60}
    (figure,) = wheel(findings(settings=settings(), recommendations=[chosen])).charts

    assert [each["chosen"] for each in figure.spec["datasets"]["settings"]] == [True, False, False]


def test_a_wheel_without_work_or_expirations_can_be_drawn() -> None:
    rows = settings(wakeups=0, late=None)
    (figure,) = wheel(findings(settings=rows, recommendations=[recommendation()])).charts

    assert figure.spec["datasets"]["settings"][0]["late_text"] == "up to 1.00 ms, none expired"
    assert "symlog" in str(figure.spec["layer"])


def test_every_purgatory_has_its_own_chart_of_the_replay() -> None:
    purgatories = [f"p{n}" for n in range(8)]
    section = wheel(
        findings(
            settings=[row for each in purgatories for row in settings(each)],
            recommendations=[recommendation(each) for each in purgatories],
        )
    )

    assert names(section) == [f"wheel-{n}" for n in range(6)]
    assert "The charts show 6 of 8 purgatories" in words(section)
    assert "Take five for p7." in words(section)
