"""The verdicts on the present timeouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from purgatory.pipeline.advise.evidence import named
from purgatory.pipeline.advise.verdict import KEEP, LENGTHEN, SHORTEN, UNKNOWN, UNLESS, Verdict, alike
from purgatory.pipeline.report import markup
from purgatory.pipeline.report.findings import VERDICTS, Findings
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.text import duration, percent, rounded

# Verdicts that ask for a change come first.
_ORDER: Final = (LENGTHEN, SHORTEN, UNKNOWN, KEEP)
_LOOKS: Final = {LENGTHEN: "change", SHORTEN: "change", UNKNOWN: "unknown", KEEP: "keep"}


def verdicts(findings: Findings) -> Section:
    """The section with one verdict for each kind, and for each key that behaves differently from its kind."""
    name, title = "verdicts", "Which timeouts to change"
    if VERDICTS not in findings:
        hint = markup.run_hint("There is no verdict yet.", "advise", findings.dataset)
        return Section(name, title, [hint])
    every = [Verdict(**row) for row in findings[VERDICTS]]
    if not every:
        return Section(name, title, [markup.paragraph("No operation has ended yet.")])
    kinds = sorted(
        (each for each in every if each.key is None),
        key=lambda each: (_ORDER.index(each.verdict), -each.operations),
    )
    told = [each for kind in kinds for each in (kind, *_different(kind, every))]
    return Section(
        name,
        title,
        [
            *(_box(each, every) for each in told),
            markup.paragraph(UNLESS),
            markup.table(
                "The present timeouts, and the share that completes within them. Small: 95 % intervals.",
                _COLUMNS,
                told,
            ),
        ],
    )


def _box(verdict: Verdict, every: Sequence[Verdict]) -> str:
    keys = alike(_keys(verdict, every)) if verdict.key is None else ()
    return markup.box(verdict.stratum, verdict.advice, [verdict.reason, *keys], _LOOKS[verdict.verdict])


def _different(kind: Verdict, every: Sequence[Verdict]) -> Iterator[Verdict]:
    return (key for key in _keys(kind, every) if not key.as_kind)


def _keys(kind: Verdict, every: Sequence[Verdict]) -> list[Verdict]:
    of_kind = (each for each in every if (each.purgatory, each.kind) == (kind.purgatory, kind.kind))
    return [each for each in of_kind if each.key is not None]


def _frequent(verdict: Verdict) -> str:
    """All frequent timeouts. Empty if there is only one."""
    return verdict.present if verdict.with_present < 1 else ""


def _completes(verdict: Verdict) -> str:
    return f"{percent(verdict.completes_low)} to {percent(verdict.completes_high)}"


def _p99_interval(verdict: Verdict) -> str:
    """The interval of p99. It may have no upper end."""
    if verdict.p99_low_us is None:
        return ""
    high = "…" if verdict.p99_high_us is None else duration(verdict.p99_high_us)
    return f"{duration(verdict.p99_low_us)} to {high}"


_COLUMNS: Final = (
    markup.PageColumn("of", lambda each: each.stratum, lambda each: each.advice, number=False),
    markup.PageColumn("operations", lambda each: f"{each.operations:,}"),
    markup.PageColumn("timeout", lambda each: named(each.present_us), _frequent),
    markup.PageColumn("complete within it", lambda each: percent(each.completes), _completes),
    markup.PageColumn(
        "p99",
        lambda each: "not known" if each.p99_us is None else duration(each.p99_us),
        _p99_interval,
    ),
    markup.PageColumn(
        "timeout / p99", lambda each: "" if each.times_p99 is None else rounded(each.times_p99)
    ),
)
