"""The timeouts by which a share of the operations would complete, and what these timeouts would do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import altair as alt

from purgatory.pipeline.report import markup
from purgatory.pipeline.report.chart import (
    GREY,
    MAX_SERIES,
    Chart,
    LegendEntry,
    colour,
    colours,
    duration_axis,
    log_scale,
    log_ticks,
    specification,
)
from purgatory.pipeline.report.findings import EFFECTS, TIMEOUTS, VERDICTS, Findings, Row, series
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.text import duration, less, more, percent


def timeouts(findings: Findings) -> Section:
    """The section with the timeouts by which shares would complete, and what these timeouts would do."""
    name, title = "timeouts", "What other timeouts would do"
    rows = findings[TIMEOUTS]
    if TIMEOUTS not in findings:
        return Section(name, title, [markup.run_hint("There is no advice yet.", "advise", findings.dataset)])
    if not rows:
        return Section(name, title, [markup.paragraph("No operation has ended yet.")])
    hues = colours(percent(share) for share in sorted({row["share"] for row in rows}))
    strata = [list(of) for _, of in groupby(rows, key=_stratum)]
    strata.sort(key=lambda of: -of[0]["operations"])
    of_kinds = [of for of in strata if of[0]["key"] is None]
    of_keys = sorted(
        (of for of in strata if of[0]["key"] is not None),
        key=lambda of: (of[0]["purgatory"], of[0]["kind"]),
    )
    return Section(
        name,
        title,
        [
            Chart(
                "timeouts-chart",
                "Timeouts by which a share would complete",
                "The naive percentile counts completed operations only. It ignores censored operations.",
                readings(rows, findings[VERDICTS], findings.series[:MAX_SERIES], hues),
                [
                    *(LegendEntry(f"{share} complete", hue) for share, hue in hues.items()),
                    LegendEntry("95 % interval", GREY, "bar"),
                    LegendEntry("not identifiable beyond this", GREY, "arrow"),
                    LegendEntry("naive percentile", GREY, "diamond"),
                    LegendEntry("present timeout", GREY, "tick"),
                ],
            ),
            _table("Kinds", of_kinds),
            _effects("Kinds", findings, [of[0] for of in of_kinds]),
            markup.collapsed(
                "Hot keys",
                _table("Kinds on the hottest keys", of_keys)
                + _effects("Kinds on the hottest keys", findings, [of[0] for of in of_keys]),
            ),
        ],
    )


def readings(
    rows: Sequence[Row], verdicts: Sequence[Row], names: Sequence[str], hues: Mapping[str, str]
) -> dict[str, Any]:
    """The timeouts by which shares of each kind complete, with confidence intervals and naive percentiles.

    `rows` come from `survival.timeouts`, `verdicts` have the present timeouts, `names` are the titles of the
    kinds, and `hues` has a colour for each share in percent.
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
            # The interval is open if the curve ends within the interval.
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
        # The labels keep the order of the data.
        sort=None,
        axis=alt.Axis(title=None, labelExpr="split(datum.label, '\\n')", labelLimit=130),
    )
    every = alt.Chart(alt.NamedData("timeouts")).encode(
        y=y,
        yOffset=alt.YOffset("share:N", sort=list(hues)),
        color=colour("share", hues),
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
    says = {
        f"{point['series']}, {point['share']} complete": f"by a timeout of {point['text']}"
        for point in points
    }
    return specification(chart, datasets, says, height=40 + 90 * len({point["series"] for point in points}))


def _table(of: str, strata: Sequence[Sequence[Row]]) -> str:
    """One row for each stratum, and a column for each share. A stratum is given as its rows of timeouts."""
    return markup.table(
        f"{of}: the timeout by which a share would complete, and its 95 % interval. "
        "A > says that the timeout is not identifiable beyond this wait.",
        [
            markup.PageColumn("of", lambda of: series(of[0]), lambda of: _key(of[0]), number=False),
            markup.PageColumn("operations", lambda of: f"{of[0]['operations']:,}"),
            markup.PageColumn("longest wait", lambda of: duration(of[0]["followed_us"])),
            *(
                _share(number, percent(row["share"]))
                for number, row in enumerate(strata[0] if strata else ())
            ),
        ],
        strata,
    )


def _effects(of: str, findings: Findings, strata: Iterable[Row]) -> str:
    """A table with one row for each timeout of these strata. Short timeouts come first."""
    by_stratum: dict[tuple[Any, ...], list[Row]] = {}
    for row in findings[EFFECTS]:
        by_stratum.setdefault(_stratum(row), []).append(row)
    notes = {
        (*_stratum(row), row[name]): note
        for name, note in (("present_us", "the present timeout"), ("timeout_us", "the verdict"))
        for row in findings[VERDICTS]
    }
    return markup.table(
        f"{of}: what each timeout would have done for all operations. Small: 95 % intervals.",
        [
            markup.PageColumn("of", series, _key, number=False),
            markup.PageColumn(
                "timeout",
                lambda row: duration(row["timeout_us"]),
                lambda row: notes.get((*_stratum(row), row["timeout_us"]), ""),
            ),
            markup.PageColumn("complete within it", lambda row: percent(row["completes"]), _interval),
            markup.PageColumn("would complete", _more_completed, _more_interval),
            markup.PageColumn("all would wait", _waited_less),
        ],
        [row for stratum in strata for row in by_stratum.get(_stratum(stratum), ())],
    )


def timeout(row: Row) -> str:
    """The timeout, or the wait beyond which the timeout is not identifiable."""
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


def _share(number: int, title: str) -> markup.PageColumn:
    return markup.PageColumn(title, lambda of: timeout(of[number]), lambda of: interval(of[number]))


def _key(row: Row) -> str:
    return "" if row["key"] is None else f"on {row['key']}"


def _interval(row: Row) -> str:
    return f"{percent(row['completes_low'])} to {percent(row['completes_high'])}"


def _more_completed(row: Row) -> str:
    return "not known" if row["more_completed"] is None else more(row["more_completed"])


def _more_interval(row: Row) -> str:
    low, high = row["more_completed_low"], row["more_completed_high"]
    return "" if low is None or round(low) == round(high) else f"{low:+,.0f} to {high:+,.0f}"


def _waited_less(row: Row) -> str:
    return "not known" if row["waited_less_us"] is None else less(row["waited_less_us"])


def _stratum(row: Row) -> tuple[Any, ...]:
    return row["purgatory"], row["kind"], row["key"]
