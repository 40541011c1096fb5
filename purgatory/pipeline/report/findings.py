"""The rows of the report's tables, and what the page derives from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from purgatory.observer import OUTCOMES
from purgatory.pipeline import tables

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

# The names of the dataset's tables. `downsampling` makes some of these tables smaller for the page.
MINUTES: Final = tables.MINUTES.name
PENDING: Final = tables.PENDING.name
FAN_OUT: Final = tables.FAN_OUT.name
GAPS: Final = tables.GAP_MINUTES.name
HOTTEST_KEYS: Final = tables.HOTTEST_KEYS.name
CURVES: Final = tables.CURVES.name
TIMEOUTS: Final = tables.TIMEOUTS.name
EFFECTS: Final = tables.EFFECTS.name
VERDICTS: Final = tables.VERDICTS.name
SETTINGS: Final = tables.SETTINGS.name
RECOMMENDATIONS: Final = tables.RECOMMENDATIONS.name
# The sums of the counts of the compacted segments, for each table.
COMMITS: Final = "commits"
# The nodes, with the rows that each has lost.
NODES: Final = "nodes"
# One row for each kind; see `kinds`.
KINDS: Final = "kinds"

KINDS_SCHEMA: Final = pa.schema(
    [
        ("purgatory", pa.string()),
        ("kind", pa.string()),
        ("operations", pa.int64()),
        *((outcome, pa.int64()) for outcome in OUTCOMES),
        ("tries_per_operation", pa.float64()),
        ("lateness_p99_us", pa.float64()),
        ("pending_max", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Findings:
    """The report's tables by name. Tables that have not been made yet are missing."""

    dataset: str
    made: datetime
    tables: Tables

    def __contains__(self, name: str) -> bool:
        return name in self.tables

    def __getitem__(self, name: str) -> Sequence[Row]:
        """The rows of a table. Empty if the table is missing."""
        return self.tables.get(name, ())

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """From the first step with an event to the end of the last such step. None if there is no event."""
        rows = [row for name in (MINUTES, PENDING, FAN_OUT) for row in self[name]]
        if not rows:
            return None
        return min(row["since"] for row in rows), max(row["until"] for row in rows)

    @property
    def ahead(self) -> timedelta:
        """How long after the last file of the journal was written the last event was, by its time."""
        written = [row["written"] for row in self[COMMITS]]
        return self.span[1] - max(written) if self.span and written else timedelta()

    @property
    def incomplete(self) -> list[tuple[datetime, datetime]]:
        """The intervals of time in which the journal lacks rows."""
        intervals: list[tuple[datetime, datetime]] = []
        for row in self[GAPS]:
            if intervals and intervals[-1][1] == row["since"]:
                intervals[-1] = intervals[-1][0], row["until"]
            else:
                intervals.append((row["since"], row["until"]))
        return intervals

    @property
    def step(self) -> timedelta | None:
        """The length of a step of time, in whole minutes. The first and the last step may be shorter."""
        lengths = [row["until"] - row["since"] for name in (MINUTES, PENDING, FAN_OUT) for row in self[name]]
        minute = timedelta(minutes=1)
        return -(-max(lengths) // minute) * minute if lengths else None

    @property
    def series(self) -> list[str]:
        """The titles of the kinds. The kinds with the most operations come first."""
        rows = self[KINDS] or sorted(self._advised, key=lambda row: -row["operations"])
        return [series(row) for row in rows]

    @property
    def operations(self) -> int:
        """How many operations are in the summary."""
        return sum(row["operations"] for row in self[KINDS])

    @property
    def advised(self) -> int:
        """How many operations the advice is based on."""
        return sum(row["operations"] for row in self._advised)

    @property
    def _advised(self) -> list[Row]:
        """One row of the advice for each kind."""
        of_kinds = (row for row in self[TIMEOUTS] if row["key"] is None)
        return list({(row["purgatory"], row["kind"]): row for row in of_kinds}.values())

    def compacted(self, column: str, table: str) -> int:
        """The sum of a column over the commits of a table."""
        return sum(row[column] for row in self[COMMITS] if row["table"] == table)


def series(row: Row) -> str:
    """The title of a row's kind and purgatory."""
    return f"{row['kind']} in {row['purgatory']}"


def kinds(minutes: Iterable[Row], pending: Iterable[Row]) -> list[dict[str, Any]]:
    """One row for each kind in each purgatory. The kinds with the most operations come first.

    Columns: ``operations``; the number of operations by outcome; ``tries_per_operation``;
    ``lateness_p99_us``, the highest value of any minute; and ``pending_max``.
    """
    counts = ("operations", *OUTCOMES)
    by_kind: dict[tuple[str, str], dict[str, Any]] = {}
    for row in minutes:
        of_kind = by_kind.setdefault(
            (row["purgatory"], row["kind"]),
            {"purgatory": row["purgatory"], "kind": row["kind"]}
            | dict.fromkeys(counts, 0)
            | {"tries_per_operation": 0.0, "lateness_p99_us": None, "pending_max": 0},
        )
        tries = of_kind["tries_per_operation"] * of_kind["operations"]
        tries += row["tries_per_operation"] * row["operations"]
        for name in counts:
            of_kind[name] += row[name]
        of_kind["tries_per_operation"] = tries / of_kind["operations"]
        known = [each["lateness_p99_us"] for each in (of_kind, row) if each["lateness_p99_us"] is not None]
        of_kind["lateness_p99_us"] = max(known, default=None)
    for row in pending:
        of_kind = by_kind[row["purgatory"], row["kind"]]
        of_kind["pending_max"] = max(of_kind["pending_max"], row["pending_max"])
    return sorted(by_kind.values(), key=lambda row: (-row["operations"], row["purgatory"], row["kind"]))
