"""The hottest keys, as charts and as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import altair as alt

from purgatory.pipeline.report import markup
from purgatory.pipeline.report.chart import COLOURS, Chart, count_axis, duration_axis, specification
from purgatory.pipeline.report.findings import HOTTEST_KEYS, Findings, Row
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.text import duration

# More bars than this are hard to read.
MAX_BARS: Final = 12
# On a narrow page, long names are cut, so that the bars have room.
_LABEL: Final = alt.ExprRef("containerSize()[0] < 600 ? 120 : 320")


def hot_keys(findings: Findings) -> Section:
    """The section on the hottest keys."""
    rows = findings[HOTTEST_KEYS]
    if HOTTEST_KEYS not in findings:
        parts: list[str | Chart] = [
            markup.run_hint("There is no summary yet.", "summarize", findings.dataset)
        ]
    elif not rows:
        parts = [markup.paragraph("No operation has watched a key.")]
    else:
        parts = [
            *(_figure(rows, measure) for measure in _MEASURES if any(row["by"] == measure for row in rows)),
            markup.collapsed(
                "All hot keys", markup.table("The hottest keys of each purgatory", _COLUMNS, rows)
            ),
        ]
    return Section("keys", "Hot keys", parts)


def _figure(rows: Sequence[Row], measure: str) -> Chart:
    title, note, text, axis = _MEASURES[measure]
    spec = hottest(rows, measure, title=title, text=text, axis=axis(title))
    return Chart(f"keys-{measure.replace('_', '-')}", f"Keys by {title}", note, spec)


def hottest(
    rows: Sequence[Row], measure: str, *, title: str, text: Callable[[float], str], axis: alt.Axis
) -> dict[str, Any]:
    """One bar for each key with one of the highest values of a measure, in all purgatories."""
    ranked = sorted(
        (row for row in rows if row["by"] == measure),
        key=lambda row: (-row[measure], row["purgatory"], row["key"]),
    )[:MAX_BARS]
    several = len({row["purgatory"] for row in ranked}) > 1
    bars = [
        {
            "name": f"{row['key']} in {row['purgatory']}" if several else row["key"],
            "value": row[measure],
            "text": text(row[measure]),
        }
        for row in ranked
    ]
    chart = (
        alt.Chart(alt.NamedData("keys"))
        .mark_bar(color=COLOURS[0], height={"band": 0.7})
        .encode(
            x=alt.X("value:Q", axis=axis),
            y=alt.Y(
                "name:N", sort=None, axis=alt.Axis(title=None, labelLimit=_LABEL, labelPadding=6, ticks=False)
            ),
            tooltip=[alt.Tooltip("name:N", title="key"), alt.Tooltip("text:N", title=title)],
        )
    )
    says = {bar["name"]: bar["text"] for bar in bars}
    return specification(chart, {"keys": bars}, says, height=40 + 22 * len(bars))


def _count(number: float) -> str:
    return f"{number:,}"


# For each measure: its title, a note, the function that formats it, and the function that makes its axis.
_MEASURES: Final[dict[str, tuple[str, str, Callable[[float], str], Callable[[str], alt.Axis]]]] = {
    "operations": ("operations", "Operations that watched the key.", _count, count_axis),
    "waited_us": (
        "time waited",
        "The waits of all operations that watched the key, added up.",
        duration,
        duration_axis,
    ),
    "wasted_tries": (
        "wasted tries",
        "The tries of operations that watched the key, without the tries that completed an operation.",
        _count,
        count_axis,
    ),
}
_COLUMNS: Final = (
    markup.text_column("key", lambda row: str(row["key"])),
    markup.text_column("purgatory", lambda row: str(row["purgatory"])),
    markup.text_column("by", lambda row: _MEASURES[row["by"]][0]),
    markup.count_column("rank", "rank"),
    markup.count_column("operations", "operations"),
    markup.PageColumn("time waited", lambda row: duration(row["waited_us"])),
    markup.count_column("wasted tries", "wasted_tries"),
)
