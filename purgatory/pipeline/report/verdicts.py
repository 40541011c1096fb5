"""The verdicts on the present timeouts: the decision first, and its evidence below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from purgatory.pipeline.advise.evidence import named
from purgatory.pipeline.advise.verdict import (
    GOAL,
    KEEP,
    LENGTHEN,
    SHORTEN,
    UNKNOWN,
    UNLESS,
    USUAL,
    Verdict,
    alike,
)
from purgatory.pipeline.report import markup
from purgatory.pipeline.report.findings import EFFECTS, VERDICTS, Findings, Row
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.text import counted, duration, less, percent, rounded

# Verdicts that ask for a change come first.
_ORDER: Final = (LENGTHEN, SHORTEN, UNKNOWN, KEEP)


def headline(findings: Findings) -> str:
    """What the page says, in one line: "Timeouts of 2 kinds: change 1"."""
    kinds = [each for each in _every(findings) if each.key is None]
    if not kinds:
        return "Purgatory report"
    many = {verdict: sum(each.verdict == verdict for each in kinds) for verdict in _ORDER}
    change, unknown = many[LENGTHEN] + many[SHORTEN], many[UNKNOWN]
    said = [f"change {change}"] if change else []
    said += [f"{unknown} cannot be told yet"] if unknown else []
    return f"Timeouts of {counted(len(kinds), 'kind')}: {', '.join(said) or 'keep all'}"


def verdicts(findings: Findings) -> Section:
    """The section with one verdict for each kind, and for each key that behaves differently from its kind."""
    name, title = "verdicts", "Which timeouts to change"
    if VERDICTS not in findings:
        hint = markup.run_hint("There is no verdict yet.", "advise", findings.dataset)
        return Section(name, title, [hint])
    every = _every(findings)
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
            *(_card(each, every, findings) for each in told),
            markup.paragraph(UNLESS),
            markup.table(
                "The present timeouts, and the share that completes within them. Small: 95 % intervals.",
                _COLUMNS,
                told,
            ),
        ],
    )


def _every(findings: Findings) -> list[Verdict]:
    return [Verdict(**row) for row in findings[VERDICTS]]


def _card(verdict: Verdict, every: Sequence[Verdict], findings: Findings) -> str:
    keys = alike(_keys(verdict, every)) if verdict.key is None else ()
    why = markup.collapsed("Why, and how sure", "\n".join(map(markup.paragraph, [verdict.reason, *keys])))
    mixture = _mixture(verdict)
    if verdict.timeout_us is None:
        look = "keep" if verdict.verdict == KEEP else "unknown"
        return markup.card(verdict.stratum, verdict.advice, [*mixture, why], look)
    effect = _effect(verdict, findings)
    parts = [
        markup.paragraph(_gain(verdict, effect)),
        *([] if effect is None else map(markup.paragraph, _price(verdict, effect))),
        _bar(verdict),
        *mixture,
        why,
    ]
    return markup.card(
        verdict.stratum, f"{named(verdict.present_us)} → {duration(verdict.timeout_us)}", parts, "change"
    )


def _effect(verdict: Verdict, findings: Findings) -> Row | None:
    """What the timeout of the verdict would have done."""
    wanted = (verdict.purgatory, verdict.kind, verdict.key, verdict.timeout_us)
    rows = (
        row
        for row in findings[EFFECTS]
        if (row["purgatory"], row["kind"], row["key"], row["timeout_us"]) == wanted
    )
    return next(rows, None)


def _gain(verdict: Verdict, effect: Row | None) -> str:
    today = f"Today {_of_hundred(verdict.completes)} complete in time."
    if effect is None:
        return today
    return f"{today} With {duration(verdict.timeout_us or 0)}, {_of_hundred(effect['completes'])} would."


def _of_hundred(share: float) -> str:
    return f"{rounded(100 * share)} of 100"


def _price(verdict: Verdict, effect: Row) -> Iterator[str]:
    """What the change costs or saves in waiting."""
    saved = effect["waited_less_us"]
    if saved is None or not round(saved):
        return
    all_together = less(saved).replace(" less", " less waiting").replace(" more", " more waiting")
    each = duration(abs(saved) / verdict.operations)
    yield f"{all_together} over {counted(verdict.operations, 'operation')}, about {each} each."


def _mixture(verdict: Verdict) -> list[str]:
    """A warning where operations of a kind have several timeouts: the verdict is on one of them."""
    if verdict.with_present >= 1 - USUAL:
        return []
    text = (
        f"These operations have several timeouts: {verdict.present}. The verdict is on the most frequent one."
    )
    return [markup.paragraph(text, "warning")]


def _bar(verdict: Verdict) -> str:
    """Where the present timeout, the advised one and the wait of 99 % are, from zero."""
    points = {"present": verdict.present_us, "advised": verdict.timeout_us, percent(GOAL): verdict.p99_us}
    return markup.bar({name: (at, duration(at)) for name, at in points.items() if at})


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


_COLUMNS: Final[Sequence[Any]] = (
    markup.PageColumn("of", lambda each: each.stratum, lambda each: each.advice, number=False),
    markup.PageColumn("operations", lambda each: f"{each.operations:,}"),
    markup.PageColumn("timeout", lambda each: named(each.present_us), _frequent),
    markup.PageColumn("complete within it", lambda each: percent(each.completes), _completes),
    markup.PageColumn(
        "p99",
        lambda each: "not known" if each.p99_us is None else duration(each.p99_us),
        _p99_interval,
    ),
)
