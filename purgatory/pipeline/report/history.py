"""Charts of outcomes, waits and pending operations over time, and of the fan-out of checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from purgatory._figures.outcomes import OUTCOME_COLOURS
from purgatory.pipeline.report import markup
from purgatory.pipeline.report.chart import (
    Chart,
    LegendEntry,
    colours,
    count_axis,
    duration_axis,
    selection_note,
    share_axis,
)
from purgatory.pipeline.report.findings import FAN_OUT, MINUTES, PENDING, Findings, Row, series
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.report.over_time import Timeline, bars, legend, lines
from purgatory.pipeline.text import counted, duration, percent, rounded


def history(findings: Findings) -> Section:
    """The section on operations over time: outcomes, waits, pending operations, and lateness."""
    parts: list[str | Chart]
    timeline, step = Timeline.of(findings), findings.step
    if MINUTES not in findings:
        parts = [markup.run_hint("There is no summary yet.", "summarize", findings.dataset)]
    elif timeline is None or step is None:
        parts = [markup.paragraph("No operation has ended yet.")]
    else:
        hues = colours(findings.series)
        parts = [
            markup.paragraph(
                f"Each step is {length(step)} long. The first and the last step are shorter if the "
                "journal covers only a part of them. The quantile of a step is the highest quantile of its "
                "minutes. "
                + selection_note(len(hues), len(findings.series), "kinds, those with the most operations")
            ),
            *_ended(findings, timeline, hues),
            *_lines(findings, timeline, hues),
        ]
    return Section("time", "Over time", parts)


def fan_out(findings: Findings) -> Section:
    """The section on fan-out: how many operations a check of a key tries."""
    rows = findings[FAN_OUT]
    timeline = Timeline.of(findings)
    parts: list[str | Chart]
    if FAN_OUT not in findings:
        parts = [markup.run_hint("There is no summary yet.", "summarize", findings.dataset)]
    elif timeline is None or not rows:
        parts = [markup.paragraph("No key has been checked yet.")]
    else:
        totals = _totals(rows)
        hues = colours(row["purgatory"] for row in totals)
        figure = _line_chart(
            timeline,
            hues,
            "fan-out-chart",
            "Operations that a check tries",
            "A check of a key tries the operations that watch it. "
            + selection_note(len(hues), len(totals), "purgatories, those with the most checks"),
            rows,
            measures=(("99 %", "tried_p99"), ("half", "tried_p50")),
            dashes=("99 % try no more", "half try no more"),
            series=lambda row: str(row["purgatory"]),
            text=rounded,
            title="operations tried",
            axis=count_axis,
        )
        parts = [figure, markup.table("What checks of keys tried and completed", _FAN_OUT_COLUMNS, totals)]
    return Section("fan-out", "Fan-out", parts)


def _ended(findings: Findings, timeline: Timeline, hues: dict[str, str]) -> list[Chart]:
    """One chart for each kind. A stack of kinds and outcomes would be unreadable."""
    legend_entries = [
        *(LegendEntry(outcome, hue) for outcome, hue in OUTCOME_COLOURS.items()),
        *timeline.legend_entries(),
    ]
    return [
        Chart(
            f"ended-{number}",
            f"Operations a minute: {name}",
            "The average over a step, by outcome.",
            bars(
                [row for row in findings[MINUTES] if series(row) == name],
                timeline,
                colours=OUTCOME_COLOURS,
                height=lambda row, outcome: row[outcome] / _minutes(row),
                title="a minute",
            ),
            legend_entries,
        )
        for number, name in enumerate(hues)
    ]


def _lines(findings: Findings, timeline: Timeline, hues: dict[str, str]) -> Iterator[Chart]:
    """The charts with a line for each kind. There is no chart of the lateness if no operation expired."""
    chart = partial(_line_chart, timeline, hues, series=series)
    minutes = findings[MINUTES]
    yield chart(
        "expired",
        "Share that expired",
        "The share of the operations that ended in a step.",
        [{**row, "ratio": row["expired"] / row["operations"]} for row in minutes],
        measures=(("expired", "ratio"),),
        text=percent,
        title="expired",
        axis=share_axis,
    )
    yield chart(
        "waited",
        "How long operations waited",
        "The time until operations ended. Where many operations expire, the chart shows their timeout.",
        minutes,
        measures=(("99 %", "wait_p99_us"), ("half", "wait_p50_us")),
        dashes=("99 % waited no longer", "half waited no longer"),
        text=duration,
        title="waited",
        axis=duration_axis,
        log=True,
    )
    yield chart(
        "pending",
        "Operations pending",
        "The highest number in a step, and the average over the step.",
        findings[PENDING],
        measures=(("at most", "pending_max"), ("on average", "pending_mean")),
        dashes=("at most", "on average"),
        text=rounded,
        title="pending",
        axis=count_axis,
    )
    if any(row["lateness_p99_us"] is not None for row in minutes):
        yield chart(
            "late",
            "How late operations expired",
            "The time from the deadline to the expiration. 99 % of the operations were less late.",
            minutes,
            measures=(("99 %", "lateness_p99_us"),),
            text=duration,
            title="late by",
            axis=duration_axis,
        )


def _line_chart(
    timeline: Timeline,
    hues: dict[str, str],
    name: str,
    heading: str,
    note: str,
    rows: Sequence[Row],
    *,
    dashes: Sequence[str] = (),
    **how: Any,
) -> Chart:
    """A chart of `lines` and its legend, in which `dashes` say what the two measures are."""
    spec = lines(rows, timeline, colours=hues, **how)
    return Chart(name, heading, note, spec, legend(hues, dashes, timeline))


def _minutes(row: Row) -> float:
    """The length of a step in minutes, at least a second: a rate over a shorter time would say nothing."""
    length: timedelta = row["until"] - row["since"]
    return max(length, timedelta(seconds=1)) / timedelta(minutes=1)


def _totals(rows: Sequence[Row]) -> list[Row]:
    """One row for each purgatory. The purgatories with the most checks come first."""
    purgatories = {row["purgatory"] for row in rows}
    totals = [
        {"purgatory": purgatory}
        | {name: sum(row[name] for row in rows if row["purgatory"] == purgatory) for name in _SUMMED}
        | {"tried_max": max(row["tried_max"] for row in rows if row["purgatory"] == purgatory)}
        for purgatory in purgatories
    ]
    return sorted(totals, key=lambda row: (-row["checks"], row["purgatory"]))


def length(step: timedelta) -> str:
    """The length of a step in words: 30 minutes, 2 hours."""
    minutes = step // timedelta(minutes=1)
    unit, size = next(each for each in _UNITS if minutes % each[1] == 0)
    return counted(minutes // size, unit)


_UNITS: Final = (("day", 1440), ("hour", 60), ("minute", 1))
_SUMMED: Final = ("checks", "tried", "completed")
_FAN_OUT_COLUMNS: Final = (
    markup.text_column("purgatory", lambda row: str(row["purgatory"])),
    *(markup.count_column(name, name) for name in _SUMMED),
    markup.PageColumn("tried by each", lambda row: f"{row['tried'] / row['checks']:,.2f}"),
    markup.count_column("at most", "tried_max"),
)
