"""Charts over time: lines and stacked bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final

import altair as alt

from purgatory.pipeline.report.chart import (
    GREY,
    LegendEntry,
    colour,
    count_axis,
    log_scale,
    log_ticks,
    scale_from_zero,
    shown_when_nearest,
    specification,
)
from purgatory.pipeline.report.findings import Findings, Row
from purgatory.pipeline.text import rounded

# How the first and the second measure of a line chart look.
_DASHES: Final = ([1, 0], [2, 3])
_LOOKS: Final = ("line", "dotted")

# The fields that a tooltip needs. The other fields are left out, because there are thousands of rows.
_POINT: Final = ("middle", "value", "series", "measure", "text", "when")

# Formats of an axis label, by the longest unit that begins at the label.
_CLOCK: Final = {
    "year": "%Y-%m-%d",
    "month": "%m-%d",
    "week": "%m-%d",
    "date": "%m-%d",
    "hours": "%H:%M",
    "minutes": "%H:%M",
    "seconds": "%H:%M:%S",
}


@dataclass(frozen=True, slots=True)
class Timeline:
    """The time that charts span, in UTC, and the intervals of it in which rows are missing."""

    since: datetime
    until: datetime
    incomplete: Sequence[tuple[datetime, datetime]] = ()

    @classmethod
    def of(cls, findings: Findings) -> Timeline | None:
        """The timeline of the findings; None if they have no events."""
        if findings.span is None:
            return None
        since, until = findings.span
        clipped = ((max(since, began), min(until, ended)) for began, ended in findings.incomplete)
        return cls(since, until, [(began, ended) for began, ended in clipped if began < ended])

    def legend_entries(self) -> list[LegendEntry]:
        """The legend entries of the background."""
        return [LegendEntry("incomplete: rows were lost", GREY, "shade")] if self.incomplete else []

    def layers(self) -> list[alt.Chart]:
        """The background: it makes the axis span the whole time, and shades incomplete intervals."""
        spanned = alt.Chart(alt.NamedData("span")).mark_point(opacity=0).encode(x=_time("since"))
        shaded = (
            alt.Chart(alt.NamedData("incomplete"))
            .mark_rect(color=GREY, opacity=0.25)
            .encode(x=_time("since"), x2="until:T")
        )
        # Vega warns of layers without data.
        return [spanned, shaded] if self.incomplete else [spanned]

    def datasets(self) -> dict[str, list[dict[str, Any]]]:
        """The data of the background."""
        span = [_interval(instant, instant) for instant in (self.since, self.until)]
        return {"span": span, "incomplete": [_interval(*each) for each in self.incomplete]}


def lines(
    rows: Sequence[Row],
    timeline: Timeline,
    *,
    series: Callable[[Row], str],
    colours: Mapping[str, str],
    measures: Sequence[tuple[str, str]],
    text: Callable[[float], str],
    title: str,
    axis: Callable[[str, Sequence[float]], alt.Axis],
    log: bool = False,
) -> dict[str, Any]:
    """One line for each series and measure. A line is interrupted where there is no value.

    A value holds for a whole step of time, so it is drawn over the whole step; a single step is a dash.
    A measure has a name and a column. The second measure, if there is one, is dotted.
    """
    steps: list[dict[str, Any]] = [
        _interval(row["since"], row["until"])
        | {
            "series": name,
            "measure": measure,
            # On a logarithmic scale there is no zero.
            "value": max(1, row[column]) if log else row[column],
            "text": text(row[column]),
        }
        for row in rows
        if (name := series(row)) in colours
        for measure, column in measures
        if row[column] is not None
    ]
    values = [step["value"] for step in steps]
    names = [name for name, _ in measures]
    dashes = alt.Scale(domain=names, range=_DASHES[: len(names)])
    hue = colour("series", colours)
    if log:
        y = alt.Y("value:Q", scale=log_scale(values), axis=axis(f"{title}, log scale", log_ticks(values)))
    else:
        y = alt.Y("value:Q", scale=scale_from_zero(values), axis=axis(title, ()))
    drawn = (
        alt.Chart(alt.NamedData("line"))
        .mark_line(interpolate="step-after", strokeWidth=1.75)
        .encode(
            x=_time("since"),
            y=y,
            color=hue,
            strokeDash=alt.StrokeDash("measure:N", scale=dashes, legend=None),
            detail="run:N",
        )
    )
    tooltip = [
        alt.Tooltip("series:N", title="of"),
        alt.Tooltip("measure:N", title="what"),
        alt.Tooltip("text:N", title="value"),
        alt.Tooltip("when:N", title="when"),
    ]
    shown = shown_when_nearest(
        alt.Chart(alt.NamedData("points")).encode(x=_time("middle"), y=y, color=hue, tooltip=tooltip)
    )
    points = [{name: step[name] for name in _POINT} for step in steps]
    datasets = timeline.datasets() | {"line": _runs(steps), "points": points}
    highest = _highest(steps, lambda step: (f"{step['series']}, {step['measure']}", step["value"]))
    return specification(alt.layer(*timeline.layers(), drawn, shown), datasets, highest)


def legend(colours: Mapping[str, str], measures: Sequence[str], timeline: Timeline) -> list[LegendEntry]:
    """The legend of a line chart. It includes the measures, if there are two."""
    series = [LegendEntry(name, colour) for name, colour in colours.items()]
    return [*series, *map(LegendEntry, measures, [GREY] * len(measures), _LOOKS), *timeline.legend_entries()]


def bars(
    rows: Sequence[Row],
    timeline: Timeline,
    *,
    colours: Mapping[str, str],
    height: Callable[[Row, str], float],
    title: str,
) -> dict[str, Any]:
    """One stacked bar for each step, with the parts that have a colour."""
    parts: list[dict[str, Any]] = []
    for row in rows:
        top = 0.0
        for part in colours:
            if value := height(row, part):
                of_part = {"part": part, "low": top, "high": top + value, "text": rounded(value)}
                parts.append(_interval(row["since"], row["until"]) | of_part)
                top += value
    scale = scale_from_zero(part["high"] for part in parts)
    drawn = (
        alt.Chart(alt.NamedData("parts"))
        .mark_rect()
        .encode(
            x=_time("since"),
            x2="until:T",
            y=alt.Y("low:Q", scale=scale, axis=count_axis(title)),
            y2="high:Q",
            color=colour("part", colours),
            tooltip=[
                alt.Tooltip("part:N", title="outcome"),
                alt.Tooltip("text:N", title=title),
                alt.Tooltip("when:N", title="when"),
            ],
        )
    )
    datasets = timeline.datasets() | {"parts": parts}
    highest = _highest(parts, lambda part: (part["part"], part["high"] - part["low"]))
    return specification(alt.layer(*timeline.layers(), drawn), datasets, highest, height=160)


def _highest(
    steps: Sequence[Mapping[str, Any]], measured: Callable[[Mapping[str, Any]], tuple[str, float]]
) -> dict[str, str]:
    """For each subject its highest value, and when that was. `measured` gives the subject and the value."""
    highest: dict[str, tuple[float, Mapping[str, Any]]] = {}
    for step in steps:
        subject, value = measured(step)
        if subject not in highest or value > highest[subject][0]:
            highest[subject] = value, step
    return {subject: f"at most {step['text']}, {step['when']}" for subject, (_, step) in highest.items()}


def between(since: datetime, until: datetime) -> str:
    """An interval of time in words, in UTC."""
    clock = "%H:%M:%S" if since.second or until.second else "%H:%M"
    day = "" if since.date() == until.date() else "%Y-%m-%d "
    return f"{since:%Y-%m-%d {clock}} to {until:{day}{clock}} UTC"


def _runs(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The points of the lines. Each series has a run of points from one interruption to the next.

    A run ends at the end of its last step.
    """
    in_order = sorted(steps, key=lambda step: (step["series"], step["measure"], step["since"]))
    drawn: list[dict[str, Any]] = []
    run = 0
    for step, following in zip_longest(in_order, in_order[1:]):
        drawn.append({name: step[name] for name in ("series", "measure", "value", "since")} | {"run": run})
        goes_on = (step["series"], step["measure"], step["until"])
        if following is None or goes_on != (following["series"], following["measure"], following["since"]):
            drawn.append(drawn[-1] | {"since": step["until"]})
            run += 1
    return drawn


def _time(field: str) -> alt.X:
    axis = alt.Axis(title="time, UTC", format=_CLOCK, tickCount=8, labelOverlap=True, labelFlush=True)
    return alt.X(f"{field}:T", scale=alt.Scale(type="utc", nice=False), axis=axis)


def _interval(since: datetime, until: datetime) -> dict[str, Any]:
    start, end = _milliseconds(since), _milliseconds(until)
    return {"since": start, "until": end, "middle": (start + end) // 2, "when": between(since, until)}


def _milliseconds(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
