"""The curves of waits, the timeouts by which shares of operations complete, and what timeouts would do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from purgatory.pipeline.report import markup
from purgatory.pipeline.report.effects import effects
from purgatory.pipeline.report.figure import GREY, MAX_SERIES, Figure, LegendEntry, colours, selection_note
from purgatory.pipeline.report.findings import CURVES, TIMEOUTS, VERDICTS, Findings, Row, series
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.report.waits import curves, interval, timeout, timeouts
from purgatory.pipeline.text import duration, percent


def waits(findings: Findings) -> Section:
    """The section with the survival curves of the kinds."""
    name, title = "waits", "How long operations wait"
    if CURVES not in findings:
        return Section(name, title, [markup.run_hint("There is no advice yet.", "advise", findings.dataset)])
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
            Figure(
                "survival",
                "Share still waiting over time",
                "Steps are estimates. A curve that does not reach the bottom ends with censored operations.",
                curves(rows, hues, log_share=False),
                legend,
            ),
            Figure(
                "survival-tail",
                "The longest waits",
                "The same with a logarithmic share: 1 % still wait where 99 % have completed.",
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


def advice(findings: Findings) -> Section:
    """The section with the timeouts by which shares would complete, and what these timeouts would do."""
    name, title = "timeouts", "What other timeouts would do"
    rows = findings[TIMEOUTS]
    if TIMEOUTS not in findings:
        return Section(name, title, [markup.run_hint("There is no advice yet.", "advise", findings.dataset)])
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
    return Section(
        name,
        title,
        [
            Figure(
                "timeouts-chart",
                "Timeouts by which a share would complete",
                "The naive percentile is that of completed operations; it ignores censored ones.",
                timeouts(rows, findings[VERDICTS], findings.series[:MAX_SERIES], hues),
                [
                    *(LegendEntry(f"{share} complete", hue) for share, hue in hues.items()),
                    LegendEntry("95 % interval", GREY, "bar"),
                    LegendEntry("not identifiable beyond this", GREY, "arrow"),
                    LegendEntry("naive percentile", GREY, "diamond"),
                    LegendEntry("present timeout", GREY, "tick"),
                ],
            ),
            _table("Kinds", of_kinds),
            effects("Kinds", findings, [of[0] for of in of_kinds]),
            markup.collapsed(
                "Hot keys",
                _table("Kinds on the hottest keys", of_keys)
                + effects("Kinds on the hottest keys", findings, [of[0] for of in of_keys]),
            ),
        ],
    )


def _table(of: str, strata: Sequence[Sequence[Row]]) -> str:
    """One row for each stratum, and a column for each share. A stratum is given as its rows of timeouts."""
    return markup.table(
        f"{of}: the timeout by which a share would complete, and its 95 % interval. "
        "> means: not identifiable beyond.",
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
