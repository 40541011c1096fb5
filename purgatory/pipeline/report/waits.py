"""How long operations wait: the survival curves of the kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import floor, log10
from typing import Any, Final

import altair as alt

from purgatory.pipeline.report import markup
from purgatory.pipeline.report.chart import (
    GREY,
    Chart,
    LegendEntry,
    colour,
    colours,
    duration_axis,
    log_scale,
    log_ticks,
    selection_note,
    share_axis,
    shown_when_nearest,
    specification,
)
from purgatory.pipeline.report.findings import CURVES, Findings, Row, series
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.text import duration, percent

# The number of ticks for censored operations per decade of waits on one curve. More ticks would look like a
# bar.
_TICKS: Final = 12


def waits(findings: Findings) -> Section:
    """The section with the survival curves of the kinds."""
    name, title = "waits", "How long operations wait"
    if CURVES not in findings:
        return Section(name, title, [markup.run_hint("There is no advice yet.", "advise", findings.dataset)])
    if not findings[CURVES]:
        return Section(name, title, [markup.paragraph("No operation has ended yet.")])
    hues = colours(findings.series)
    legend = [
        *(LegendEntry(of, hue) for of, hue in hues.items()),
        LegendEntry("95 % interval", GREY, "shade"),
        LegendEntry("censored here", GREY, "tick"),
    ]
    rows = findings[CURVES]
    which = selection_note(len(hues), len(findings.series), "kinds, those with the most operations")
    return Section(
        name,
        title,
        [
            markup.paragraph(
                "The Kaplan-Meier estimate of how long operations take to complete. An operation that "
                "expired, was cancelled or failed counts until it ended; it is censored there. "
                f"A curve ends with the longest wait recorded. {which}"
            ),
            Chart(
                "survival",
                "Share still waiting over time",
                "Steps are estimates. A curve that does not reach the bottom ends with censored operations.",
                curves(rows, hues, log_share=False),
                legend,
            ),
            Chart(
                "survival-tail",
                "The longest waits",
                "The same curves with a logarithmic share: 1 % still wait where 99 % have completed.",
                curves(rows, hues, log_share=True),
                legend,
            ),
            markup.paragraph(
                "Curves are downsampled for this page; the difference is less than the width of a line. "
                "The dataset has every step in advice/curves.",
                "aside",
            ),
        ],
    )


def curves(rows: Iterable[Row], hues: Mapping[str, str], *, log_share: bool) -> dict[str, Any]:
    """The share that still waits over time: steps with a confidence interval, and ticks at censored waits.

    `rows` come from `downsampling.downsampled`, each curve in order. With `log_share` the axis is logarithmic
    and shows the longest waits, too.
    """
    by_series: dict[str, list[Row]] = {}
    for row in rows:
        if row["key"] is None and series(row) in hues:
            by_series.setdefault(series(row), []).append(row)
    rows = [row for curve in by_series.values() for row in curve]
    # The chart begins where the first curve leaves 100 %. Before that, there is nothing to see.
    leaves = min((_wait(row) for row in rows if row["survival"] < 1), default=1)
    waits = [max(leaves, _wait(row)) for row in rows]
    steps: list[dict[str, Any]] = []
    cuts: list[dict[str, Any]] = []
    # The shorter of two similar curves is drawn on top, so that both are visible.
    for name, curve in sorted(by_series.items(), key=lambda each: -each[1][-1]["waited_us"]):
        # Before the first operation ends, all operations wait.
        steps.append({"series": name, "wait": 0.8 * min(waits), "share": 1, "low": 1, "high": 1})
        steps += (_step(row, of=curve[0]["at_risk"]) for row in curve if _wait(row) >= leaves)
        cuts += (cut for cut in _censored_ticks(curve) if cut["wait"] >= leaves)
    if log_share:
        # Zero has no logarithm: the line ends with the last operation that waited.
        steps, cuts = ([row for row in each if row["share"] > 0] for each in (steps, cuts))
        shares = [step["share"] for step in steps]
        scale = alt.Scale(type="log", domain=[0.8 * min(shares, default=1), 1], nice=False)
        axis = share_axis("still waiting, log scale", log_ticks(shares))
    else:
        scale, axis = alt.Scale(domain=[0, 1]), share_axis("still waiting")
    x = alt.X("wait:Q", scale=log_scale(waits), axis=duration_axis("waited, log scale", log_ticks(waits)))
    y, hue = alt.Y("share:Q", scale=scale, axis=axis), colour("series", hues)
    of_steps = alt.Chart(alt.NamedData("steps")).encode(x=x, color=hue)
    interval_area = (
        of_steps.mark_area(interpolate="step-after", opacity=0.2, clip=True)
        .encode(y=alt.Y("low:Q", scale=scale, axis=axis), y2="high:Q")
        .transform_filter("isValid(datum.low)")
    )
    line = of_steps.mark_line(interpolate="step-after", strokeWidth=2).encode(y=y)
    cut = (
        alt.Chart(alt.NamedData("cuts"))
        .mark_point(shape="stroke", angle=90, size=90, strokeWidth=1.5)
        .encode(x=x, y=y, color=hue)
    )
    tooltip = [
        alt.Tooltip("series:N", title="of"),
        alt.Tooltip("text:N", title="by"),
        alt.Tooltip("share_text:N", title="still wait"),
        alt.Tooltip("low_text:N", title="at least (95 %)"),
        alt.Tooltip("high_text:N", title="at most (95 %)"),
        alt.Tooltip("completed:Q", title="completed by then", format=","),
        alt.Tooltip("censored:Q", title="censored by then", format=","),
    ]
    shown = shown_when_nearest(of_steps.encode(y=y, tooltip=tooltip).transform_filter("isValid(datum.text)"))
    ends = {
        name: f"{percent(curve[-1]['survival'])} still wait after {duration(curve[-1]['waited_us'])}"
        for name, curve in by_series.items()
    }
    return specification(
        alt.layer(interval_area, line, cut, shown), {"steps": steps, "cuts": cuts}, ends, height=320
    )


def _step(row: Row, *, of: int) -> dict[str, Any]:
    return {
        "series": series(row),
        "wait": _wait(row),
        "share": row["survival"],
        "low": row["survival_low"],
        "high": row["survival_high"],
        "text": duration(row["waited_us"]),
        "share_text": percent(row["survival"]),
        "low_text": _bound(row["survival_low"]),
        "high_text": _bound(row["survival_high"]),
        "completed": row["completed_running"],
        "censored": _censored(row, of=of),
    }


def _bound(share: float | None) -> str:
    return "unknown" if share is None else percent(share)


def _censored_ticks(curve: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Ticks at waits that ended without completion, at most _TICKS for a decade."""
    counts = [_censored(row, of=curve[0]["at_risk"]) for row in curve]
    where = [row for row, before, count in zip(curve, [0, *counts], counts, strict=False) if count > before]
    for _, neighbours in groupby(where, key=lambda row: floor(_TICKS * log10(_wait(row)))):
        *_, last = neighbours
        yield {"series": series(last), "wait": _wait(last), "share": last["survival"]}


def _censored(row: Row, *, of: int) -> int:
    """How many of `of` operations had ended without completion by the wait of the row."""
    ended: int = of - row["at_risk"] + row["ended"]
    return ended - int(row["completed_running"])


def _wait(row: Row) -> int:
    """The wait in microseconds, at least 1, because a logarithmic scale has no zero."""
    return max(1, int(row["waited_us"]))
