"""The text of each section."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from purgatory.pipeline.advise.verdict import KEEP, LENGTHEN, SHORTEN, UNKNOWN, UNLESS
from purgatory.pipeline.replay.wheel_waits import NO_WAITS
from purgatory.pipeline.report.findings import Findings
from purgatory.pipeline.report.history import fan_out, history
from purgatory.pipeline.report.hot_keys import hot_keys as hot_keys_section
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.report.overview import compacted, overview
from purgatory.pipeline.report.page import sections
from purgatory.pipeline.report.timeouts import timeouts as timeouts_section
from purgatory.pipeline.report.verdicts import headline, verdicts
from purgatory.pipeline.tables import ADVICE_TABLES, REPLAY_TABLES
from tests.pipeline.report.sample_findings import (
    NOON,
    PRODUCE,
    advice,
    commits,
    everything,
    findings,
    minute,
    nodes,
    summary,
    timeouts,
    verdict,
)
from tests.pipeline.report.section_text import words


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("verdicts", "advise"),
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

    assert section.charts == []
    assert f"Run: purgatory-pipeline {command} &#x27;build/data set&#x27;" in words(section)


def test_sections_without_events_say_so() -> None:
    made = dict.fromkeys((table.name for table in (*ADVICE_TABLES, *REPLAY_TABLES)), ())
    empty = findings(**summary(), **made, commits=[], nodes=[])
    by_name = {section.name: section for section in sections(empty)}
    for name in ("verdicts", "waits", "timeouts"):
        assert words(by_name[name]).strip() == "No operation has ended yet."
    assert words(by_name["wheel"]).strip() == NO_WAITS
    assert not any("Run: " in words(section) for section in by_name.values())

    assert "No operation has ended" in words(history(empty))
    assert "No operation has watched" in words(hot_keys_section(empty))
    assert "No key has been checked" in words(fan_out(empty))
    assert "recorded by no node" in words(overview(empty))


def test_without_checks_there_is_no_fan_out() -> None:
    assert "No key has been checked" in words(fan_out(findings(**summary(minute(0), fan_out=[]))))


def test_the_overview_counts_the_analysed_operations() -> None:
    text = words(overview(everything()))

    assert "operations 20" in text
    assert "expired 20 %" in text
    assert "duplicates 2 quarantined 1" in text
    assert "2026-03-01 12:00 to 12:04 UTC, recorded by a, &lt;/script&gt;" in text


def test_of_many_nodes_only_the_first_are_named() -> None:
    text = words(overview(findings(nodes=nodes(*"abcdefg"))))

    assert "nodes 7" in text
    assert "recorded by a, b, c, d, e, …" in text


@pytest.mark.parametrize(("seconds", "said"), [(0, True), (179, True), (180, False), (3600, False)])
def test_times_that_are_later_than_the_journal_was_written_are_virtual_or_wrong(
    seconds: int, said: bool
) -> None:
    written = NOON + timedelta(seconds=seconds)
    text = words(overview(findings(**summary(*map(minute, range(4))), commits=commits(4, written))))
    assert ("the journal was written. So this is virtual time" in text) is said
    assert ("The times reach 4 min 0 s beyond" in text) is (seconds == 0)


def test_incomplete_minutes_are_in_the_overview() -> None:
    text = words(overview(everything()))
    assert "Incomplete minutes, shaded below: 1. The journal lacks 14 operations." in text


@pytest.mark.parametrize(
    ("found", "warning"),
    [
        (findings(**summary(minute(0)), commits=commits(4)), None),
        (
            findings(**summary(minute(0)), commits=commits(5)),
            "summary has 4 operations of the 5 compacted",
        ),
        (findings(**summary(minute(0)), **advice(*timeouts(operations=4)), commits=commits(4)), None),
        (
            findings(**summary(minute(0)), **advice(*timeouts(operations=3)), commits=commits(4)),
            "waits and timeouts have 3 operations of the 4 compacted",
        ),
    ],
)
def test_tables_older_than_the_dataset_cause_a_warning(found: Findings, warning: str | None) -> None:
    text = words(overview(found))

    assert (" compacted" in text) is (warning is not None)
    assert (warning or "") in text


def test_the_rows_of_the_journal_are_accounted_for() -> None:
    assert "operations 2 1 15 12 2 1" in words(compacted(findings()))


def words_of_parts(section: Section) -> list[str]:
    return [words(Section("", "", [part])) for part in section.parts if isinstance(part, str)]


def test_advice_for_hot_keys_is_below_that_for_kinds() -> None:
    keys = [*timeouts(key="few", operations=2), *timeouts(key="many", operations=5)]
    *_, of_kinds, of_keys = words_of_parts(timeouts_section(findings(**advice(*timeouts(), *keys))))

    assert "on few" not in of_kinds
    assert of_keys.index("on many") < of_keys.index("on few")


def test_advice_without_hot_keys_has_empty_tables_of_them() -> None:
    *_, of_keys = words_of_parts(timeouts_section(findings(**advice(*timeouts()))))

    assert "Fetch in fetch" not in of_keys


def test_the_effect_of_each_timeout_is_in_a_table() -> None:
    found = findings(**advice(*timeouts(), verdicts=[verdict()]))
    _, table, _ = words_of_parts(timeouts_section(found))

    assert "1.00 ms the present timeout 50 % 40 % to 60 % 3 fewer 5.00 ms less" in table
    assert "2.00 ms the verdict 75 % 65 % to 85 % 1 more +0 to +2 5.00 ms less" in table
    assert "5.00 ms 90 % 80 % to 100 % not known not known" in table


def test_verdicts_that_ask_for_a_change_come_before_the_others() -> None:
    told = [
        verdict(operations=9, verdict=KEEP, timeout_us=None),
        verdict(key="alike", as_kind=True),
        verdict(key="other", verdict=UNKNOWN, timeout_us=None),
        verdict(PRODUCE, advice="lengthen it"),
    ]
    section = verdicts(findings(**advice(verdicts=told)))
    looks = [look for part in section.parts for look in re.findall(r'"box (\w+)"', str(part))]
    text = words(section)

    assert looks == ["change", "keep", "unknown"]
    assert re.search("Produce in produce: *1.00 ms → 2.00 ms *Today 50 of 100 complete in time.", text)
    assert "1 key behaves as its kind does: alike." in text
    assert "Fetch in fetch on other: " in text
    assert "Fetch in fetch on alike" not in text
    assert UNLESS in text


def test_a_card_has_the_gain_and_the_price_of_its_change_and_the_evidence_below() -> None:
    found = findings(**advice(*timeouts(), verdicts=[verdict(p99_us=1_900)]))
    card, *_ = verdicts(found).parts
    text = words(Section("", "", [card]))

    assert "Fetch in fetch: 1.00 ms → 2.00 ms" in text
    assert "Today 50 of 100 complete in time. With 2.00 ms, 75 of 100 would." in text
    assert "5.00 ms less waiting over 8 operations, about 625 µs each." in text
    places = re.findall(r'--at: ([\d.]+)"><b>(.*?)</b> (.*?)</li>', str(card))
    assert places == [
        ("0.5000", "present", "1.00 ms"),
        ("0.9500", "99 %", "1.90 ms"),
        ("1.0000", "advised", "2.00 ms"),
    ]
    _, _, below = text.partition("Why, and how sure")
    assert "Only half of 8 complete." in below


def test_a_price_that_is_not_known_is_left_out() -> None:
    unknown = verdict(timeout_us=5_000)
    text = words(verdicts(findings(**advice(*timeouts(), verdicts=[unknown]))))

    assert "With 5.00 ms, 90 of 100 would." in text
    assert "waiting over" not in text


def test_a_mixture_of_timeouts_is_a_warning_in_the_card() -> None:
    warning = "These operations have several timeouts: 1.00 ms (90 %), 2.00 ms (10 %)."
    mixed, usual = (verdict(with_present=share) for share in (0.6, 0.95))

    assert warning in words(verdicts(findings(**advice(verdicts=[mixed]))))
    assert warning not in words(verdicts(findings(**advice(verdicts=[usual]))))


def test_what_to_keep_is_one_line_with_its_reason_below() -> None:
    kept = verdict(verdict=KEEP, timeout_us=None, advice="keep 1.00 ms")
    card, *_ = verdicts(findings(**advice(verdicts=[kept]))).parts

    assert "Today" not in str(card)
    assert re.search("Fetch in fetch: *keep 1.00 ms *Why, and how sure", words(Section("", "", [card])))


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ([], "Purgatory report"),
        ([LENGTHEN], "Timeouts of 1 kind: change 1"),
        ([LENGTHEN, KEEP, SHORTEN], "Timeouts of 3 kinds: change 2"),
        ([LENGTHEN, UNKNOWN], "Timeouts of 2 kinds: change 1, 1 cannot be told yet"),
        ([KEEP, KEEP], "Timeouts of 2 kinds: keep all"),
    ],
)
def test_the_title_of_the_page_is_its_decision(told: list[str], line: str) -> None:
    kinds = [
        verdict({"purgatory": "p", "kind": f"K{number}"}, verdict=each) for number, each in enumerate(told)
    ]

    assert (
        headline(findings(**advice(verdicts=[*kinds, verdict(key="not counted")] if kinds else []))) == line
    )


def test_the_present_timeout_is_in_the_table_of_verdicts() -> None:
    known = verdict(p99_us=2_000, p99_high_us=2_500, times_p99=0.5, with_present=1.0)
    unknown = verdict(completes_low=0.3, p99_low_us=None)
    text = words(verdicts(findings(**advice(verdicts=[verdict(), known, unknown]))))

    assert "8 1.00 ms 1.00 ms (90 %), 2.00 ms (10 %) 50 % 40 % to 60 % not known 1.50 ms to …" in text
    assert "8 1.00 ms 50 % 40 % to 60 % 2.00 ms 1.50 ms to 2.50 ms" in text
    assert "50 % 30 % to 60 % not known" in text
    assert text.count(" to …") == 1
