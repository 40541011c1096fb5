"""What was analysed, and what of it is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from purgatory.journal.schema import OUTCOMES
from purgatory.pipeline.advice import duration
from purgatory.pipeline.report import findings as found
from purgatory.pipeline.report import markup
from purgatory.pipeline.report.figure import Figure
from purgatory.pipeline.report.findings import Findings, Row
from purgatory.pipeline.report.over_time import between
from purgatory.pipeline.report.section import Section
from purgatory.pipeline.schemas import OPERATIONS_TABLE, TABLES

# Names of nodes that are still read.
_NAMED: Final = 5


def overview(findings: Findings) -> Section:
    """How many operations there are, of which kinds, from when to when; and warnings."""
    return Section("overview", "Overview", [*_warnings(findings), _facts(findings), *_kinds(findings)])


def compacted(findings: Findings) -> Section:
    """What came of the journal's rows, and what the nodes did not record."""
    totals = [
        {"table": table.name}
        | {name: findings.compacted(name, table.name) for name in ("files", "unreadable_files", *_ROWS)}
        for table in TABLES
    ]
    columns = [
        markup.name("table", lambda row: str(row["table"])),
        markup.count("segments", "files"),
        markup.count("unreadable", "unreadable_files"),
        *(markup.count(name, name) for name in _ROWS),
    ]
    parts: list[str | Figure] = [
        markup.paragraph(
            "Each row of the journal was kept, or dropped as a duplicate of one that was, or put into the "
            "dataset's quarantine, with the reason."
        ),
        markup.table("What became of the journal's rows", columns, totals),
        markup.table("The nodes, and what they could not record", _NODE_COLUMNS, findings[found.NODES]),
    ]
    return Section("compacted", "What was compacted", parts)


_ROWS: Final = ("rows", "kept", "duplicates", "quarantined")
_NODE_COLUMNS: Final = (
    markup.name("node", lambda row: str(row["node"])),
    markup.count("gaps", "gaps"),
    markup.count("operations lost", "lost_operations"),
    markup.count("checks lost", "lost_checks"),
)


def _warnings(findings: Findings) -> Iterator[str]:
    kept = findings.compacted("kept", OPERATIONS_TABLE.name)
    if found.KINDS not in findings:
        yield markup.command("There is no summary yet.", "summarize", findings.dataset)
    elif findings.operations != kept:
        yield markup.command(
            f"The summary is of {findings.operations:,} operations, but {kept:,} are compacted.",
            "summarize",
            findings.dataset,
        )
    if found.TIMEOUTS in findings and findings.advised != kept:
        yield markup.command(
            f"The waits and timeouts are of {findings.advised:,} operations, but {kept:,} are compacted.",
            "advise",
            findings.dataset,
        )
    minutes = sum(row["incomplete_minutes"] for row in findings[found.GAPS])
    if minutes:
        lost = sum(row["lost_operations"] for row in findings[found.NODES])
        yield markup.paragraph(
            f"{minutes:,} minutes are incomplete, and shaded below: the journal lacks {lost:,} operations.",
            "warning",
        )


def _facts(findings: Findings) -> str:
    nodes = [str(row["node"]) for row in findings[found.NODES]]
    facts = [("operations", f"{findings.compacted('kept', OPERATIONS_TABLE.name):,}")]
    if findings.operations:
        expired = sum(row["expired"] for row in findings[found.KINDS])
        facts.append(("expired", _percent(expired, findings.operations)))
        facts.append(("kinds", f"{len(findings[found.KINDS]):,}"))
    facts.append(("nodes", f"{len(nodes):,}"))
    for name in ("duplicates", "quarantined"):
        facts.append((name, f"{sum(findings.compacted(name, table.name) for table in TABLES):,}"))
    named = ", ".join(nodes[:_NAMED]) + (", …" if len(nodes) > _NAMED else "")
    when = f"{between(*findings.span)}, " if findings.span else ""
    return markup.facts(facts) + markup.paragraph(f"{when}recorded by {named or 'nobody'}")


def _kinds(findings: Findings) -> Iterator[str]:
    if findings[found.KINDS]:
        yield markup.table(
            "The kinds of operations. Late by is the 99th percentile of the worst minute.",
            _KIND_COLUMNS,
            findings[found.KINDS],
        )


def _lateness(row: Row) -> str:
    return "" if row["lateness_p99_us"] is None else duration(row["lateness_p99_us"])


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %"


_KIND_COLUMNS: Final[Sequence[Any]] = (
    markup.name("kind", found.series),
    markup.count("operations", "operations"),
    *(markup.count(outcome, outcome) for outcome in OUTCOMES),
    markup.Column("share expired", lambda row: _percent(row["expired"], row["operations"])),
    markup.Column("tries each", lambda row: f"{row['tries_per_operation']:.2f}"),
    markup.Column("late by", _lateness),
    markup.count("pending at most", "pending_max"),
)
