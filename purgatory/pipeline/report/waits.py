"""Charts of how long operations wait: survival curves, and the timeouts that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import floor, log10
from typing import Any, Final

import altair as alt

from purgatory.pipeline.report.figure import (
    GREY,
    colour,
    duration_axis,
    log_scale,
    log_ticks,
    share_axis,
    shown_when_nearest,
    specification,
)
from purgatory.pipeline.report.findings import Row, series
from purgatory.pipeline.text import duration, percent

# Ticks for censored operations, per decade of waits on one curve. Closer together they would be a bar.
_TICKS: Final = 12


def curves(rows: Iterable[Row], colours: Mapping[str, str], *, log_share: bool) -> dict[str, Any]:
    """The share that still waits over time: steps with a confidence interval, and ticks at censored waits.

    `rows` come from `downsampling.downsampled`, each curve in order. With `log_share` the axis is logarithmic
    and shows the longest waits, too.
    """
    by_series: dict[str, list[Row]] = {}
    for row in rows:
        if row["key"] is None and series(row) in colours:
            by_series.setdefault(series(row), []).append(row)
    waits = [_wait(row) for curve in by_series.values() for row in curve]
    steps: list[dict[str, Any]] = []
    cuts: list[dict[str, Any]] = []
    # The shorter of two similar curves is drawn on top, so that both are visible.
    for name, curve in sorted(by_series.items(), key=lambda each: -each[1][-1]["waited_us"]):
        # Before the first end all operations wait.
        steps.append({"series": name, "wait": 0.8 * min(waits), "share": 1, "low": 1, "high": 1})
        steps += (_step(row, of=curve[0]["at_risk"]) for row in curve)
        cuts += _censored_ticks(curve)
    if log_share:
        # Zero has no logarithm: the line ends with the last operation that waited.
        steps, cuts = ([row for row in each if row["share"] > 0] for each in (steps, cuts))
        shares = [step["share"] for step in steps]
        scale = alt.Scale(type="log", domain=[0.8 * min(shares, default=1), 1], nice=False)
        axis = share_axis("still waiting, log scale", log_ticks(shares))
    else:
        scale, axis = alt.Scale(domain=[0, 1]), share_axis("still waiting")
    x = alt.X("wait:Q", scale=log_scale(waits), axis=duration_axis("waited, log scale", log_ticks(waits)))
    y, hue = alt.Y("share:Q", scale=scale, axis=axis), colour("series", colours)
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
        alt.Tooltip("share:Q", title="still wait", format=".3%"),
        alt.Tooltip("low:Q", title="at least (95 %)", format=".3%"),
        alt.Tooltip("high:Q", title="at most (95 %)", format=".3%"),
        alt.Tooltip("completed:Q", title="completed by then", format=","),
        alt.Tooltip("censored:Q", title="censored by then", format=","),
    ]
    shown = shown_when_nearest(of_steps.encode(y=y, tooltip=tooltip).transform_filter("isValid(datum.text)"))
    return specification(
        alt.layer(interval_area, line, cut, shown), {"steps": steps, "cuts": cuts}, height=320
    )


def timeouts(
    rows: Sequence[Row], verdicts: Sequence[Row], names: Sequence[str], colours: Mapping[str, str]
) -> dict[str, Any]:
    """The timeouts by which shares of each kind complete, with confidence intervals and naive percentiles.

    `rows` come from `survival.timeouts`, `verdicts` have the present timeouts, `names` are the titles of the
    kinds, and `colours` has a colour for each share in percent.
    """
    of_kinds = [row for row in rows if row["key"] is None and series(row) in names]
    of_kinds.sort(key=lambda row: (names.index(series(row)), row["share"]))
    points = [
        {
            "series": series(row),
            "label": _label(row),
            "share": percent(row["share"]),
            "timeout": row["timeout_us"],
            "followed": row["followed_us"] if row["timeout_us"] is None else None,
            "low": row["timeout_low_us"],
            # The interval is open if the curve ends within it.
            "high": row["followed_us"] if row["timeout_high_us"] is None else row["timeout_high_us"],
            "naive": row["naive_us"],
            "text": timeout(row),
            "interval": interval(row),
            "naive_text": None if row["naive_us"] is None else duration(row["naive_us"]),
        }
        for row in of_kinds
    ]
    present = [
        {"series": series(row), "label": _label(row), "at": row["present_us"], "text": row["present"]}
        for row in verdicts
        if row["key"] is None and series(row) in names and row["present_us"]
    ]
    values = [
        max(1, point[name])
        for point in points
        for name in ("timeout", "followed", "low", "high", "naive")
        if point[name] is not None
    ] + [each["at"] for each in present]
    scale, axis = log_scale(values), duration_axis("timeout, log scale", log_ticks(values))

    def at(field: str) -> alt.X:
        return alt.X(f"{field}:Q", scale=scale, axis=axis)

    tooltip = [
        alt.Tooltip("series:N", title="of"),
        alt.Tooltip("share:N", title="complete"),
        alt.Tooltip("text:N", title="by a timeout of"),
        alt.Tooltip("interval:N", title="95 % interval"),
        alt.Tooltip("naive_text:N", title="naive percentile"),
    ]
    y = alt.Y(
        "label:N",
        # In the order of the data.
        sort=None,
        axis=alt.Axis(title=None, labelExpr="split(datum.label, '\\n')", labelLimit=130),
    )
    every = alt.Chart(alt.NamedData("timeouts")).encode(
        y=y,
        yOffset=alt.YOffset("share:N", sort=list(colours)),
        color=colour("share", colours),
        tooltip=tooltip,
    )
    known, unknown = "isValid(datum.timeout)", "isValid(datum.followed)"
    ticks = (
        alt.Chart(alt.NamedData("present"))
        .mark_tick(color=GREY, thickness=2)
        .encode(
            x=at("at"),
            y=y,
            tooltip=[alt.Tooltip("series:N", title="of"), alt.Tooltip("text:N", title="present timeout")],
        )
    )
    chart = alt.layer(
        every.transform_filter(known).mark_rule(strokeWidth=3, opacity=0.5).encode(x=at("low"), x2="high:Q"),
        every.transform_filter("isValid(datum.naive)")
        .mark_point(shape="diamond", size=50, filled=False)
        .encode(x=at("naive")),
        every.transform_filter(known).mark_point(filled=True, size=70, opacity=1).encode(x=at("timeout")),
        every.transform_filter(unknown)
        .mark_point(shape="triangle-right", filled=True, size=90, opacity=1)
        .encode(x=at("followed")),
        # Vega warns of layers without data.
        *([ticks] if present else []),
    )
    datasets = {"timeouts": points, "present": present}
    return specification(chart, datasets, height=40 + 90 * len({point["series"] for point in points}))


def timeout(row: Row) -> str:
    """The timeout, or the wait beyond which it is not identifiable."""
    return f"> {duration(row['followed_us'])}" if row["timeout_us"] is None else duration(row["timeout_us"])


def interval(row: Row) -> str:
    """The confidence interval of the timeout; empty if there is none."""
    low, high = row["timeout_low_us"], row["timeout_high_us"]
    if low is None:
        return ""
    until = f"> {duration(row['followed_us'])}" if high is None else duration(high)
    return f"{duration(low)} to {until}"


def _label(row: Row) -> str:
    return f"{row['kind']}\nin {row['purgatory']}"


def _step(row: Row, *, of: int) -> dict[str, Any]:
    return {
        "series": series(row),
        "wait": _wait(row),
        "share": row["survival"],
        "low": row["survival_low"],
        "high": row["survival_high"],
        "text": duration(row["waited_us"]),
        "completed": row["completed_running"],
        "censored": _censored(row, of=of),
    }


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
    """The wait in microseconds, at least 1: a logarithmic scale has no zero."""
    return max(1, int(row["waited_us"]))
