"""How long operations wait, and by which timeout so many would complete."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from purgatory.pipeline.advice import duration
from purgatory.pipeline.report import markup
from purgatory.pipeline.report.figure import DRAWN, GREY, Figure, Mark, colours, drawn
from purgatory.pipeline.report.findings import CURVES, SENTENCES, TIMEOUTS, Findings, Row, series
from purgatory.pipeline.report.section import Section
from purgatory.pipeline.report.waits import curves, interval, percent, timeout, timeouts

# Said outright; the other sentences are folded away.
_SPOKEN: Final = 0.99


def waits(findings: Findings) -> Section:
    """The curves of survival, of the kinds."""
    name, title = "waits", "How long operations wait"
    if CURVES not in findings:
        return Section(name, title, [markup.command("There is no advice yet.", "advise", findings.dataset)])
    hues = colours(findings.series)
    legend = [
        *(Mark(of, hue) for of, hue in hues.items()),
        Mark("95 % interval", GREY, "shade"),
        Mark("some were cut off here", GREY, "tick"),
    ]
    rows = findings[CURVES]
    which = drawn(len(hues), len(findings.series), "kinds, those with the most operations")
    return Section(
        name,
        title,
        [
            markup.paragraph(
                "The Kaplan-Meier estimate of how long operations take to complete. One that expired, was "
                "cancelled or failed counts for as long as it was watched; there it is cut off. "
                f"A curve ends with the longest wait recorded. {which}"
            ),
            Figure(
                "survival",
                "Share still waiting, by how long",
                "Steps are estimates. A curve that does not reach the bottom was cut off.",
                curves(rows, hues, log_share=False),
                legend,
            ),
            Figure(
                "survival-tail",
                "The last few still waiting",
                "The same by the logarithm of the share: 1 % still wait where 99 % have completed.",
                curves(rows, hues, log_share=True),
                legend,
            ),
            markup.paragraph(
                "Curves are thinned for this page, to less than a line's width off. "
                "The dataset has every step of them in advice/curves.",
                "aside",
            ),
        ],
    )


def advice(findings: Findings) -> Section:
    """The timeouts by which so many would complete, and what they would change."""
    name, title = "timeouts", "Which timeout"
    rows = findings[TIMEOUTS]
    if TIMEOUTS not in findings:
        return Section(name, title, [markup.command("There is no advice yet.", "advise", findings.dataset)])
    hues = colours(percent(share) for share in sorted({row["share"] for row in rows}))
    strata = [
        list(of) for _, of in groupby(rows, key=lambda row: (row["purgatory"], row["kind"], row["key"]))
    ]
    strata.sort(key=lambda of: -of[0]["operations"])
    of_kinds = [of for of in strata if of[0]["key"] is None]
    of_keys = sorted(
        (of for of in strata if of[0]["key"] is not None),
        key=lambda of: (of[0]["purgatory"], of[0]["kind"]),
    )
    sentences = {_of(row): row["sentence"] for row in findings[SENTENCES]}
    spoken = [row for of in of_kinds for row in of if row["share"] == _SPOKEN]
    others = [row for of in (*of_kinds, *of_keys) for row in of if row not in spoken]
    return Section(
        name,
        title,
        [
            markup.points(sentences[_of(row)] for row in spoken),
            Figure(
                "timeouts-chart",
                "Timeouts by which so many would complete",
                "Naive is the percentile of those that did complete, which leaves out what was cut off.",
                timeouts(rows, findings.series[:DRAWN], hues),
                [
                    *(Mark(f"{share} complete", hue) for share, hue in hues.items()),
                    Mark("95 % interval", GREY, "bar"),
                    Mark("not identifiable beyond this", GREY, "arrow"),
                    Mark("naive percentile", GREY, "diamond"),
                ],
            ),
            _table("Of each kind", of_kinds),
            markup.folded("Of the hot keys", _table("Of each kind on the keys most used", of_keys)),
            markup.folded(
                "What each timeout would change", markup.points(sentences[_of(row)] for row in others)
            ),
        ],
    )


def _table(of: str, strata: Sequence[Sequence[Row]]) -> str:
    """A row for each stratum, with a column for each share; each stratum is its rows of timeouts."""
    return markup.table(
        f"{of}: the timeout by which so many would complete, and its 95 % interval. "
        "> is: not identifiable beyond.",
        [
            markup.Column(
                "of",
                lambda of: series(of[0]),
                lambda of: "" if of[0]["key"] is None else f"on {of[0]['key']}",
                number=False,
            ),
            markup.Column("operations", lambda of: f"{of[0]['operations']:,}"),
            markup.Column("longest wait", lambda of: duration(of[0]["followed_us"])),
            *(
                _share(number, percent(row["share"]))
                for number, row in enumerate(strata[0] if strata else ())
            ),
        ],
        strata,
    )


def _share(number: int, title: str) -> markup.Column:
    return markup.Column(title, lambda of: timeout(of[number]), lambda of: interval(of[number]))


def _of(row: Row) -> tuple[Any, ...]:
    return row["purgatory"], row["kind"], row["key"], row["share"]
