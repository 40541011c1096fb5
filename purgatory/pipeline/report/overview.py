"""The overview of the analysed operations, and the account of compacted and lost rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from purgatory.journal.schema import EXPIRED
from purgatory.observer import OUTCOMES
from purgatory.pipeline.report import markup
from purgatory.pipeline.report.chart import Chart
from purgatory.pipeline.report.findings import GAPS, KINDS, NODES, TIMEOUTS, Findings, Row, series
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.report.over_time import between
from purgatory.pipeline.schemas import OPERATIONS_TABLE, ROW_COUNTS, TABLES
from purgatory.pipeline.text import counted, duration, percent

# At most this many names of nodes are listed.
_MAX_NAMES: Final = 5
# The clocks of a node and of the machine that stores its journal may differ by this much.
_AHEAD: Final = timedelta(minutes=1)


def overview(findings: Findings) -> Section:
    """The section with the number of operations, their kinds, their time span, and warnings."""
    return Section("overview", "Overview", [*_warnings(findings), _facts(findings), *_kinds(findings)])


def compacted(findings: Findings) -> Section:
    """The section on the journal's rows: how many were kept, and how many the nodes lost."""
    totals = [
        {"table": table.name}
        | {name: findings.compacted(name, table.name) for name in ("files", "unreadable_files", *ROW_COUNTS)}
        for table in TABLES
    ]
    columns = [
        markup.text_column("table", lambda row: str(row["table"])),
        markup.count_column("segments", "files"),
        markup.count_column("unreadable", "unreadable_files"),
        *(markup.count_column(name, name) for name in ROW_COUNTS),
    ]
    parts: list[str | Chart] = [
        markup.paragraph(
            "Each row of the journal was kept, or dropped as a duplicate of a kept row, or moved to the "
            "dataset's quarantine, with the reason."
        ),
        markup.table("Rows of the journal", columns, totals),
        markup.table("Nodes, and the rows they lost", _NODE_COLUMNS, findings[NODES]),
    ]
    return Section("compacted", "What was compacted", parts)


_NODE_COLUMNS: Final = (
    markup.text_column("node", lambda row: str(row["node"])),
    markup.count_column("gaps", "gaps"),
    markup.count_column("operations lost", "lost_operations"),
    markup.count_column("checks lost", "lost_checks"),
)


def _warnings(findings: Findings) -> Iterator[str]:
    kept = findings.compacted("kept", OPERATIONS_TABLE.name)
    if KINDS not in findings:
        yield markup.run_hint("There is no summary yet.", "summarize", findings.dataset)
    elif findings.operations != kept:
        yield markup.run_hint(
            f"The summary has {counted(findings.operations, 'operation')} of the {kept:,} compacted.",
            "summarize",
            findings.dataset,
        )
    if TIMEOUTS in findings and findings.advised != kept:
        yield markup.run_hint(
            f"The waits and timeouts have {counted(findings.advised, 'operation')} of the {kept:,} "
            "compacted.",
            "advise",
            findings.dataset,
        )
    if findings.ahead > _AHEAD:
        yield markup.paragraph(
            f"The times reach {duration(findings.ahead // timedelta(microseconds=1))} beyond the moment at "
            "which the journal was written. So this is virtual time, or the clock of a node is wrong.",
            "warning",
        )
    minutes = sum(row["incomplete_minutes"] for row in findings[GAPS])
    if minutes:
        lost = sum(row["lost_operations"] for row in findings[NODES])
        yield markup.paragraph(
            f"Incomplete minutes, shaded below: {minutes:,}. The journal lacks {counted(lost, 'operation')}.",
            "warning",
        )


def _facts(findings: Findings) -> str:
    nodes = [str(row["node"]) for row in findings[NODES]]
    facts = [("operations", f"{findings.compacted('kept', OPERATIONS_TABLE.name):,}")]
    if findings.operations:
        expired = sum(row[EXPIRED] for row in findings[KINDS])
        facts.append((EXPIRED, percent(expired / findings.operations)))
        facts.append(("kinds", f"{len(findings[KINDS]):,}"))
    facts.append(("nodes", f"{len(nodes):,}"))
    for name in ("duplicates", "quarantined"):
        facts.append((name, f"{sum(findings.compacted(name, table.name) for table in TABLES):,}"))
    named = ", ".join(nodes[:_MAX_NAMES]) + (", …" if len(nodes) > _MAX_NAMES else "")
    when = f"{between(*findings.span)}, " if findings.span else ""
    return markup.facts(facts) + markup.paragraph(f"{when}recorded by {named or 'no node'}")


def _kinds(findings: Findings) -> Iterator[str]:
    if findings[KINDS]:
        yield markup.table(
            "The kinds of operations. Late by: the highest 99th percentile of any minute.",
            _KIND_COLUMNS,
            findings[KINDS],
        )


def _lateness(row: Row) -> str:
    return "" if row["lateness_p99_us"] is None else duration(row["lateness_p99_us"])


_KIND_COLUMNS: Final[Sequence[Any]] = (
    markup.text_column("kind", series),
    markup.count_column("operations", "operations"),
    *(markup.count_column(outcome, outcome) for outcome in OUTCOMES),
    markup.PageColumn("share expired", lambda row: percent(row[EXPIRED] / row["operations"])),
    markup.PageColumn("tries each", lambda row: f"{row['tries_per_operation']:,.2f}"),
    markup.PageColumn("late by", _lateness),
    markup.count_column("pending at most", "pending_max"),
)
