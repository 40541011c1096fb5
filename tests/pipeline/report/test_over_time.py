"""The data of charts over time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from purgatory.pipeline.report.chart import count_axis, duration_axis
from purgatory.pipeline.report.findings import series
from purgatory.pipeline.report.over_time import Timeline, bars, between, legend, lines
from purgatory.pipeline.text import duration
from tests.pipeline.report.sample_findings import MINUTE, NOON, PRODUCE, findings, minute, step, summary

TIMELINE = Timeline(NOON, NOON + 5 * MINUTE)


def milliseconds(minutes: float) -> int:
    return round((NOON + minutes * MINUTE).timestamp() * 1000)


def drawn(
    rows: list[dict[str, Any]], *measures: str, timeline: Timeline = TIMELINE, log: bool = False
) -> dict[str, Any]:
    return lines(
        rows,
        timeline,
        series=series,
        colours={"Fetch in fetch": "#111111"},
        measures=[(measure, measure) for measure in measures],
        text=duration,
        title="waited",
        axis=duration_axis if log else count_axis,
        log=log,
    )


def runs(spec: dict[str, Any]) -> list[list[float]]:
    """The points of each run of a line, in minutes since noon."""
    found: dict[int, list[float]] = {}
    for point in spec["datasets"]["line"]:
        found.setdefault(point["run"], []).append((point["since"] - milliseconds(0)) / 60_000)
    return list(found.values())


def test_a_line_is_drawn_to_the_end_of_its_last_step() -> None:
    assert runs(drawn([minute(0), minute(1)], "wait_p50_us")) == [[0, 1, 2]]


def test_a_single_step_is_a_dash() -> None:
    assert runs(drawn([minute(0)], "wait_p50_us")) == [[0, 1]]


def test_a_line_is_interrupted_where_there_is_no_value() -> None:
    rows = [minute(0), minute(1, lateness_p99_us=None), minute(2), minute(4)]

    assert runs(drawn(rows, "lateness_p99_us")) == [[0, 1], [2, 3], [4, 5]]


def test_each_measure_and_series_has_its_own_line() -> None:
    rows = [minute(1), minute(0), minute(0, {"purgatory": "fetch", "kind": "Other"})]
    spec = drawn(rows, "wait_p50_us", "wait_p99_us")

    assert runs(spec) == [[0, 1, 2], [0, 1, 2]]
    assert {point["series"] for point in spec["datasets"]["points"]} == {"Fetch in fetch"}


def test_a_tooltip_has_the_value_and_the_interval_in_words() -> None:
    (point,) = drawn([minute(2)], "wait_p99_us")["datasets"]["points"]

    assert (point["text"], point["measure"]) == ("2.00 ms", "wait_p99_us")
    assert point["when"] == "2026-03-01 12:02 to 12:03 UTC"
    assert point["middle"] == milliseconds(2.5)


def test_on_a_logarithmic_axis_values_are_at_least_one() -> None:
    plain, log = (
        drawn([minute(0)], "wait_p50_us", log=log)["datasets"]["points"][0] for log in (False, True)
    )

    assert (plain["value"], log["value"]) == (0, 1)
    assert log["text"] == "0 µs"


def test_the_axis_spans_the_whole_time_and_incomplete_intervals_are_shaded() -> None:
    incomplete = [step(number) | {"incomplete_minutes": 1} for number in (-1, 0, 2, 9)]
    timeline = Timeline.of(findings(**summary(minute(0), minute(3), gaps=incomplete, pending=[])))
    assert timeline is not None
    spec = drawn([minute(0)], "wait_p50_us", timeline=timeline)

    assert [each["since"] for each in spec["datasets"]["span"]] == [milliseconds(0), milliseconds(4)]
    assert [(each["since"], each["until"]) for each in spec["datasets"]["incomplete"]] == [
        (milliseconds(0), milliseconds(1)),
        (milliseconds(2), milliseconds(3)),
    ]
    assert "incomplete" in str(spec["layer"])
    assert [mark.look for mark in legend({}, (), timeline)] == ["shade"]


def test_without_gaps_nothing_is_shaded() -> None:
    assert "incomplete" not in str(drawn([minute(0)], "wait_p50_us")["layer"])
    assert legend({}, (), TIMELINE) == []


def test_without_events_there_is_no_timeline() -> None:
    assert Timeline.of(findings(**summary())) is None


def test_a_legend_includes_dotted_lines() -> None:
    legend_entries = legend({"Fetch in fetch": "#111111"}, ("p99", "p50"), TIMELINE)

    assert [(mark.text, mark.look) for mark in legend_entries] == [
        ("Fetch in fetch", "block"),
        ("p99", "line"),
        ("p50", "dotted"),
    ]


def test_the_parts_of_a_bar_are_stacked() -> None:
    spec = bars(
        [minute(0), minute(1, PRODUCE, completed=0)],
        TIMELINE,
        colours={"completed": "#111111", "expired": "#222222", "failed": "#333333"},
        height=lambda row, part: row[part] * 2,
        title="a minute",
    )

    assert [(part["part"], part["low"], part["high"]) for part in spec["datasets"]["parts"]] == [
        ("completed", 0, 4),
        ("expired", 4, 6),
        ("expired", 0, 2),
    ]


def test_an_interval_has_seconds_and_dates_only_if_needed() -> None:
    second, day = timedelta(seconds=1), timedelta(days=1)

    assert between(NOON, NOON + second) == "2026-03-01 12:00:00 to 12:00:01 UTC"
    assert between(NOON, NOON + day) == "2026-03-01 12:00 to 2026-03-02 12:00 UTC"
