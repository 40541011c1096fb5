"""The trade-off of tick and wheel size: the reaper's work against the lateness of expirations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import altair as alt

from purgatory.pipeline.replay.recommendation import ReplayedSetting
from purgatory.pipeline.replay.wheel_waits import NO_WAITS
from purgatory.pipeline.report import markup
from purgatory.pipeline.report.chart import (
    COLOURS,
    GREY,
    MAX_SERIES,
    Chart,
    LegendEntry,
    count_axis,
    duration_axis,
    log_scale,
    log_ticks,
    selection_note,
    specification,
)
from purgatory.pipeline.report.findings import RECOMMENDATIONS, SETTINGS, Findings, Row
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.report.over_time import between
from purgatory.pipeline.text import counted, duration

_CHOSEN: Final = COLOURS[5]
_BEST: Final = COLOURS[0]
_LEGEND: Final = (
    LegendEntry("recommended", _CHOSEN, "ring"),
    LegendEntry("default", GREY, "square"),
    LegendEntry("no setting is better", _BEST, "dot"),
    LegendEntry("another setting is better", GREY, "dot"),
)


def wheel(findings: Findings) -> Section:
    """The section on other ticks and wheel sizes, with the recommended settings."""
    if SETTINGS not in findings:
        parts: list[str | Chart] = [
            markup.run_hint("The wheel has not been replayed yet.", "replay", findings.dataset)
        ]
    elif not findings[SETTINGS]:
        parts = [markup.paragraph(NO_WAITS)]
    else:
        chosen = {row["purgatory"]: row for row in findings[RECOMMENDATIONS]}
        settings = [ReplayedSetting(**row) for row in findings[SETTINGS]]
        by_purgatory = [list(of) for _, of in groupby(settings, key=lambda each: each.purgatory)]
        parts = [
            markup.paragraph(
                "Recorded operations were replayed on a timing wheel with other settings. "
                + selection_note(
                    len(by_purgatory[:MAX_SERIES]), len(by_purgatory), "purgatories, the first by name"
                )
            ),
            markup.bullets(row["sentence"] for row in findings[RECOMMENDATIONS]),
            *(
                _figure(number, of, chosen[of[0].purgatory])
                for number, of in enumerate(by_purgatory[:MAX_SERIES])
            ),
            markup.collapsed(
                "All settings", markup.table("Work and lateness of each setting", _COLUMNS, settings)
            ),
        ]
    return Section("wheel", "Tick and wheel size", parts)


def trade_off(settings: Sequence[ReplayedSetting], chosen: Row) -> dict[str, Any]:
    """The chart of one purgatory: a dot for each setting, and a line along the Pareto set."""
    points: list[dict[str, Any]] = [
        {
            "setting": f"tick {duration(each.tick_us)}, {each.wheel_size:,} slots",
            "work": each.work,
            # On a logarithmic scale there is no zero.
            "late": max(1, each.late_us),
            "work_text": f"{counted(each.wakeups, 'wake-up')}, {counted(each.moves, 'move')}",
            "late_text": _late(each),
            "fullest": each.fullest_slot,
            "pareto": each.pareto,
            "default": each.is_default,
            "chosen": (each.tick_us, each.wheel_size) == (chosen["tick_us"], chosen["wheel_size"]),
        }
        for each in settings
    ]
    works, lates = ([point[name] for point in points] for name in ("work", "late"))
    if all(works):
        work = alt.X("work:Q", scale=log_scale(works), axis=count_axis(_WORK, log_ticks(works)))
    else:
        scale = alt.Scale(type="symlog", domain=[0, 1.25 * max(works) or 1], nice=False)
        work = alt.X("work:Q", scale=scale, axis=count_axis(_WORK, [0, *log_ticks([1, max(1, *works)])]))
    late = alt.Y(
        "late:Q", scale=log_scale(lates), axis=duration_axis("late by, p99, log scale", log_ticks(lates))
    )
    every = alt.Chart(alt.NamedData("settings")).encode(
        x=work,
        y=late,
        tooltip=[
            alt.Tooltip("setting:N", title="setting"),
            alt.Tooltip("work_text:N", title="work"),
            alt.Tooltip("late_text:N", title="late by, p99"),
            alt.Tooltip("fullest:Q", title="fullest slot", format=","),
        ],
    )
    best, of_default, of_chosen = (
        every.transform_filter(f"datum.{name}") for name in ("pareto", "default", "chosen")
    )
    chart = alt.layer(
        best.mark_line(color=_BEST, strokeWidth=1.5, opacity=0.6).encode(order="work:Q"),
        every.mark_point(filled=True, color=GREY, size=45, opacity=0.7),
        best.mark_point(filled=True, color=_BEST, size=70, opacity=1),
        of_default.mark_point(shape="square", color=GREY, size=330, strokeWidth=1.5, opacity=1),
        of_chosen.mark_point(color=_CHOSEN, size=220, strokeWidth=2.5, opacity=1),
    )
    says = {
        f"{name}, {point['setting']}": f"{point['work_text']}, late by {point['late_text']}"
        for name in ("chosen", "default")
        for point in points
        if point[name]
    }
    return specification(chart, {"settings": points}, says)


def _figure(number: int, settings: Sequence[ReplayedSetting], chosen: Row) -> Chart:
    first = settings[0]
    return Chart(
        f"wheel-{number}",
        f"Work against lateness: {first.purgatory}",
        "One dot for each tick and wheel size. Settings further left and further down are better. "
        f"The replay has {chosen['operations']:,} of {counted(chosen['recorded'], 'operation')} with a "
        f"timeout, {between(first.since, first.until)}.",
        trade_off(settings, chosen),
        _LEGEND,
    )


def _late(setting: ReplayedSetting) -> str:
    """The lateness of expirations. If no operation expired, the highest lateness that is possible."""
    return (
        duration(setting.late_us) if setting.expired else f"up to {duration(setting.late_us)}, none expired"
    )


_WORK: Final = "wake-ups and moves, log scale"
_COLUMNS: Final = (
    markup.text_column("purgatory", lambda each: str(each.purgatory)),
    markup.PageColumn("tick", lambda each: duration(each.tick_us)),
    markup.PageColumn("slots", lambda each: f"{each.wheel_size:,}"),
    markup.PageColumn("levels", lambda each: f"{each.levels:,}"),
    markup.PageColumn("wake-ups", lambda each: f"{each.wakeups:,}"),
    markup.PageColumn("moves", lambda each: f"{each.moves:,}"),
    markup.PageColumn("fullest slot", lambda each: f"{each.fullest_slot:,}"),
    markup.PageColumn("late by, p99", _late),
    markup.text_column("no setting is better", lambda each: "yes" if each.pareto else ""),
)
