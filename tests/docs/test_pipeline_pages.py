"""docs/watch.md and docs/wheel-size.md quote what the commands print."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from purgatory.pipeline.command import FAILED, INTERRUPTED, UNREAD, USAGE_ERROR
from purgatory.pipeline.jobs.watch import LACKING, WARNED
from purgatory.pipeline.replay.recommendation import Recommendation, ReplayedSetting
from purgatory.pipeline.watch import monitor
from purgatory.pipeline.watch.control_chart import MAX_BASELINE, MIN_BASELINE, SHIFT_RUN
from purgatory.pipeline.watch.monitor import HEADER, Gap, Monitor, Window
from purgatory.pipeline.watch.notice import SHIFTED
from tests.docs.programs import DOCS

WATCH = (DOCS / "watch.md").read_text()
WHEEL_SIZE = (DOCS / "wheel-size.md").read_text()

DEFAULT = ReplayedSetting(
    purgatory="fetch",
    tick_us=1000,
    wheel_size=60,
    since=datetime(2026, 11, 22, tzinfo=UTC),
    until=datetime(2026, 11, 22, tzinfo=UTC),
    operations=6120,
    wakeups=791,
    moves=2328,
    fullest_slot=24,
    levels=2,
    expired=2328,
    lateness_mean_us=500.0,
    lateness_p99_us=986.0,
    lateness_max_us=1000,
    pareto=True,
)
COARSE = replace(DEFAULT, tick_us=10_000, wheel_size=20, wakeups=392, moves=0, lateness_p99_us=9780.0)
IDLE = replace(DEFAULT, operations=13_377, wakeups=16, moves=0)


@pytest.mark.parametrize(
    "recommendation",
    [Recommendation(COARSE, DEFAULT, 10_000), Recommendation(IDLE, IDLE, 10_000)],
    ids=["another setting", "the default"],
)
def test_the_recommendations_of_replay_are_quoted(recommendation: Recommendation) -> None:
    assert recommendation.sentence() in " ".join(WHEEL_SIZE.split())


def test_the_header_of_watch_is_quoted() -> None:
    assert f"\n{HEADER}\n" in WATCH


def test_each_line_of_watch_is_explained() -> None:
    printed = set(re.findall(r'f?"([A-Z]{4,}) ', Path(monitor.__file__).read_text()))

    assert printed == set(re.findall(r"^\| `([A-Z]+)` \|", WATCH, flags=re.MULTILINE))


def test_a_window_and_a_warning_look_as_the_page_shows_them() -> None:
    [quoted, warning] = re.findall(r"^.*01:00:35.*$", WATCH, flags=re.MULTILINE)
    start = int(datetime(2026, 11, 22, 1, 0, 35, tzinfo=UTC).timestamp()) * 1_000_000
    window = Window(
        start=start,
        end=start + 5_000_000,
        purgatory="fetch",
        kind="DelayedFetch",
        operations=155,
        expired=155,
        wait_p50_us=53_700,
        wait_p99_us=517_000,
        lateness_p99_us=22_100,
        tries_per_operation=1.04,
        latest=start + 4_000_000,
    )
    usual = [
        replace(window, start=at, end=at + 5_000_000, latest=at + 4_000_000, operations=200, expired=180)
        for at in range(start - 60_000_000, start, 5_000_000)
    ]
    later = replace(window, start=start + 5_000_000, end=start + 10_000_000, latest=start + 9_000_000)

    lines = list(map(str, Monitor(0).update([*usual, window, later])))

    assert quoted in lines
    [printed] = [line for line in lines if line.startswith("WARNING")]
    figures = re.compile(r"\d+\.\d")
    # The limits are those of another baseline.
    assert figures.sub("0", printed) == figures.sub("0", warning)


def test_an_incomplete_window_is_marked_as_the_page_says() -> None:
    watching = Monitor(0)
    [message] = watching.record_gaps([Gap("node", 0, 1_000_000, 3, 4)])

    assert str(message).startswith("INCOMPLETE")
    assert "`(incomplete)`" in WATCH
    assert "`so far`" in WATCH


def test_the_objects_of_watch_have_the_values_that_the_page_lists() -> None:
    watching = Monitor(0)
    window = Window(0, 10, "fetch", "Fetch", 100, 50, 1.0, 1.0, None, 1.0, 9)
    usual = [replace(window, start=at, end=at + 10, expired=0) for at in range(10, 200, 10)]
    messages = [
        *watching.update([*usual, replace(window, start=300, end=310, latest=309)]),
        *watching.update([replace(usual[0], start=400, end=410, latest=500)]),
        *watching.record_read(9_999),
        *watching.record_gaps([Gap("node", 0, 1_000_000, 3, 4)]),
        *watching.report_rejected(1, 2, "example"),
    ]
    rows = re.findall(r"^\| `(\w+)` \| (`.*`) \|$", WATCH, flags=re.MULTILINE)
    listed = {event: set(re.findall(r"`(\w+)`", names)) for event, names in rows}

    assert {message.event for message in messages} == listed.keys() - {SHIFTED}
    assert [listed[message.event] ^ message.values.keys() for message in messages] == [set()] * len(messages)


def test_the_exit_statuses_of_watch_are_those_of_the_page() -> None:
    statuses = {int(status) for status in re.findall(r"^\| (\d+) \|", WATCH, flags=re.MULTILINE)}

    assert statuses == {0, FAILED, USAGE_ERROR, WARNED, LACKING, INTERRUPTED, UNREAD}


def test_the_sizes_of_the_baseline_are_those_of_the_control_chart() -> None:
    assert f"the last {MAX_BASELINE} windows" in WATCH
    assert f"as it has {MIN_BASELINE}." in WATCH
    assert f"outside for {SHIFT_RUN} windows" in WATCH
