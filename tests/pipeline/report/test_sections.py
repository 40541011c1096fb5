"""The text and charts of each section."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from purgatory.pipeline.report.findings import Findings
from purgatory.pipeline.report.history import fan_out, history, length
from purgatory.pipeline.report.hot_keys import MAX_BARS
from purgatory.pipeline.report.hot_keys import hot_keys as hot_keys_section
from purgatory.pipeline.report.overview import compacted, overview
from purgatory.pipeline.report.page import sections
from purgatory.pipeline.report.section import Section
from purgatory.pipeline.report.trade_off import wheel
from purgatory.pipeline.report.waiting import advice as advice_section
from purgatory.pipeline.report.waiting import waits
from tests.pipeline.report.sample_findings import (
    HOSTILE,
    PRODUCE,
    advice,
    checks,
    commits,
    curve,
    everything,
    findings,
    hot_keys,
    minute,
    nodes,
    recommendation,
    settings,
    step,
    summary,
    timeouts,
)


def words(section: Section) -> str:
    """The text of a section's HTML, without charts."""
    html = "\n".join(part for part in section.parts if isinstance(part, str))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def names(section: Section) -> list[str]:
    return [figure.name for figure in section.figures]


def test_every_finding_has_its_chart() -> None:
    charts = {section.name: names(section) for section in sections(everything())}

    assert charts == {
        "overview": [],
        "waits": ["survival", "survival-tail"],
        "timeouts": ["timeouts-chart"],
        "time": ["ended-0", "ended-1", "ended-2", "expired", "waited", "pending", "late"],
        "keys": ["keys-operations", "keys-waited-us"],
        "fan-out": ["fan-out-chart"],
        "wheel": ["wheel-0"],
        "compacted": [],
    }


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("overview", "summarize"),
        ("waits", "advise"),
        ("timeouts", "advise"),
        ("time", "summarize"),
        ("keys", "summarize"),
        ("fan-out", "summarize"),
        ("wheel", "replay"),
    ],
)
def test_a_missing_table_is_reported_with_the_command_that_makes_it(name: str, command: str) -> None:
    section = next(each for each in sections(findings()) if each.name == name)

    assert section.figures == []
    assert f"Run: purgatory-pipeline {command} &#x27;build/data set&#x27;" in words(section)


def test_sections_without_events_say_so() -> None:
    empty = findings(**summary(), commits=[], nodes=[])

    assert "No operation has ended" in words(history(empty))
    assert "No operation has watched" in words(hot_keys_section(empty))
    assert "No key has been checked" in words(fan_out(empty))
    assert "recorded by no node" in words(overview(empty))


def test_without_checks_there_is_no_fan_out() -> None:
    assert "No key has been checked" in words(fan_out(findings(**summary(minute(0), fan_out=[]))))


def test_the_overview_counts_the_analysed_operations() -> None:
    said = words(overview(everything()))

    assert "operations 20" in said
    assert "expired 20 %" in said
    assert "duplicates 2 quarantined 1" in said
    assert "2026-03-01 12:00 to 12:04 UTC, recorded by a, &lt;/script&gt;" in said


def test_of_many_nodes_only_the_first_are_named() -> None:
    said = words(overview(findings(nodes=nodes(*"abcdefg"))))

    assert "nodes 7" in said
    assert "recorded by a, b, c, d, e, …" in said


def test_incomplete_minutes_are_in_the_overview() -> None:
    assert "1 minutes are incomplete" in words(overview(everything()))
    assert "the journal lacks 14 operations" in words(overview(everything()))


@pytest.mark.parametrize(
    ("found", "warning"),
    [
        (findings(**summary(minute(0)), commits=commits(4)), None),
        (
            findings(**summary(minute(0)), commits=commits(5)),
            "summary has 4 operations, but 5 are compacted",
        ),
        (findings(**summary(minute(0)), **advice(*timeouts(operations=4)), commits=commits(4)), None),
        (
            findings(**summary(minute(0)), **advice(*timeouts(operations=3)), commits=commits(4)),
            "waits and timeouts have 3 operations, but 4 are compacted",
        ),
    ],
)
def test_tables_older_than_the_dataset_cause_a_warning(found: Findings, warning: str | None) -> None:
    said = words(overview(found))

    assert (" are compacted" in said) is (warning is not None)
    assert (warning or "") in said


def test_the_rows_of_the_journal_are_accounted_for() -> None:
    assert "operations 2 1 15 12 2 1" in words(compacted(findings()))


def test_sentences_of_kinds_are_visible_and_all_others_are_collapsed() -> None:
    rows = [*timeouts(), *timeouts(key="k"), *timeouts(PRODUCE, operations=4)]
    outright, *_, folded = words_of_parts(advice_section(findings(**advice(*rows))))

    assert outright.count("not identifiable") == 2
    assert folded.count("With a timeout") == 6
    assert folded.count("not identifiable") == 1


def words_of_parts(section: Section) -> list[str]:
    return [words(Section("", "", [part])) for part in section.parts if isinstance(part, str)]


def test_advice_for_hot_keys_is_below_that_for_kinds() -> None:
    keys = [*timeouts(key="few", operations=2), *timeouts(key="many", operations=5)]
    _, of_kinds, of_keys, _ = words_of_parts(advice_section(findings(**advice(*timeouts(), *keys))))

    assert "on few" not in of_kinds
    assert of_keys.index("on many") < of_keys.index("on few")


def test_advice_without_hot_keys_has_an_empty_table_of_them() -> None:
    *_, of_keys, _ = words_of_parts(advice_section(findings(**advice(*timeouts()))))

    assert "Fetch in fetch" not in of_keys


def test_of_many_kinds_those_with_the_most_operations_are_drawn() -> None:
    many = [minute(0, {"purgatory": "p", "kind": f"K{n}"}, operations=n + 4) for n in range(8)]
    found = findings(**summary(*many, pending=[]), **advice(curves=curve()))

    assert [mark.text for mark in waits(found).figures[0].legend][:2] == ["K7 in p", "K6 in p"]
    for section in (waits(found), history(found)):
        assert "The charts show 6 of 8 kinds" in words(section)


def test_of_many_purgatories_those_with_the_most_checks_are_drawn() -> None:
    rows = [checks(0, f"p{n}") | {"checks": n + 1} for n in range(8)]
    (figure,) = fan_out(findings(**summary(minute(0), fan_out=rows))).figures

    assert "The charts show 6 of 8 purgatories" in figure.note
    assert figure.legend[0].text == "p7"


def test_without_late_operations_there_is_no_chart_of_lateness() -> None:
    section = history(findings(**summary(minute(0, lateness_p99_us=None))))

    assert "late" not in names(section)


def test_counts_are_per_minute_for_any_length_of_step() -> None:
    row = minute(0) | step(0, minutes=5)
    (figure,) = (each for each in history(findings(**summary(row))).figures if each.name == "ended-0")

    assert [part["high"] - part["low"] for part in figure.spec["datasets"]["parts"]] == pytest.approx(
        [0.4, 0.2, 0.2]
    )


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
        for figure in hot_keys_section(findings(**summary(minute(0), hottest_keys=rows))).figures
        if figure.name == "keys-operations"
    )

    assert [bar["name"] for bar in bars] == ["b in produce", f"{HOSTILE} in fetch", "b in fetch"]


def test_only_the_first_bars_are_drawn() -> None:
    rows = [hot_keys()[1] | {"key": str(n), "operations": n} for n in range(1, 30)]
    (figure,) = hot_keys_section(findings(**summary(minute(0), hottest_keys=rows))).figures
    bars = figure.spec["datasets"]["keys"]

    assert len(bars) == MAX_BARS
    assert (bars[0]["name"], bars[0]["text"]) == ("29", "29")


def test_a_dot_of_the_trade_off_has_its_setting() -> None:
    (figure,) = wheel(findings(settings=settings(), recommendations=[recommendation()])).figures
    default, worse, chosen = figure.spec["datasets"]["settings"]

    assert default["setting"] == "tick 1.00 ms, 32 slots"
    assert [(each["default"], each["pareto"], each["chosen"]) for each in (default, worse, chosen)] == [
        (True, True, False),
        (False, False, False),
        (False, True, True),
    ]
    assert (chosen["work"], chosen["late"], chosen["late_text"]) == (9, 4_950, "4.95 ms")
    assert "8 of 12 operations with a timeout, 2026-03-01 12:00 to 12:03 UTC" in figure.note


def test_the_default_can_be_the_recommendation() -> None:
    chosen = recommendation() | {"tick_us": 1_000, "wheel_size": 32}
    (figure,) = wheel(findings(settings=settings(), recommendations=[chosen])).figures

    assert [each["chosen"] for each in figure.spec["datasets"]["settings"]] == [True, False, False]


def test_a_wheel_without_work_or_expirations_can_be_drawn() -> None:
    rows = settings(wakeups=0, late=None)
    (figure,) = wheel(findings(settings=rows, recommendations=[recommendation()])).figures

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
