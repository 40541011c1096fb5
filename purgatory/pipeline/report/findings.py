"""What the tables of a dataset say, as the page needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from purgatory.journal.schema import OUTCOMES

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

# Tables as they are in the dataset, or as `steps` and `downsampling` leave them.
MINUTES: Final = "minutes"
PENDING: Final = "pending"
FAN_OUT: Final = "fan_out"
GAPS: Final = "gaps"
HOTTEST_KEYS: Final = "hottest_keys"
CURVES: Final = "curves"
TIMEOUTS: Final = "timeouts"
SENTENCES: Final = "sentences"
SETTINGS: Final = "settings"
RECOMMENDATIONS: Final = "recommendations"
# What was compacted: batches of each table; the nodes, with what each has lost.
COMMITS: Final = "commits"
NODES: Final = "nodes"
# `kinds`, below.
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
    """Tables by their names, without those that have not been made yet."""

    dataset: str
    made: datetime
    tables: Tables

    def __contains__(self, name: str) -> bool:
        return name in self.tables

    def __getitem__(self, name: str) -> Sequence[Row]:
        """Its rows; none where there is no such table."""
        return self.tables.get(name, ())

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """From the first step in which anything happened to the last one; None where nothing has."""
        rows = [row for name in (MINUTES, PENDING, FAN_OUT) for row in self[name]]
        if not rows:
            return None
        return min(row["since"] for row in rows), max(row["until"] for row in rows)

    @property
    def incomplete(self) -> list[tuple[datetime, datetime]]:
        """The stretches of time of which rows are missing."""
        stretches: list[tuple[datetime, datetime]] = []
        for row in self[GAPS]:
            if stretches and stretches[-1][1] == row["since"]:
                stretches[-1] = stretches[-1][0], row["until"]
            else:
                stretches.append((row["since"], row["until"]))
        return stretches

    @property
    def step(self) -> timedelta | None:
        """How long each step of time is."""
        return next(
            (row["until"] - row["since"] for name in (MINUTES, PENDING, FAN_OUT) for row in self[name]), None
        )

    @property
    def series(self) -> list[str]:
        """The kinds, as a reader knows them, those with the most operations first."""
        rows = self[KINDS] or sorted(self._advised, key=lambda row: -row["operations"])
        return [series(row) for row in rows]

    @property
    def operations(self) -> int:
        """How many the summary is of."""
        return sum(row["operations"] for row in self[KINDS])

    @property
    def advised(self) -> int:
        """How many the advice is of."""
        return sum(row["operations"] for row in self._advised)

    @property
    def _advised(self) -> list[Row]:
        """A row of the advice for each kind."""
        of_kinds = (row for row in self[TIMEOUTS] if row["key"] is None)
        return list({(row["purgatory"], row["kind"]): row for row in of_kinds}.values())

    def compacted(self, column: str, table: str) -> int:
        """The sum of a column of the commits of a table."""
        return sum(row[column] for row in self[COMMITS] if row["table"] == table)


def series(row: Row) -> str:
    """What a row is about, for a reader: a kind in a purgatory."""
    return f"{row['kind']} in {row['purgatory']}"


def kinds(minutes: Iterable[Row], pending: Iterable[Row]) -> list[dict[str, Any]]:
    """A row for each kind in each purgatory, those of which most operations ended first.

    ``operations``, and as many of each outcome; ``tries_per_operation``; the worst ``lateness_p99_us`` of any
    minute; and ``pending_max``.
    """
    counts = ("operations", *OUTCOMES)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in minutes:
        of_kind = found.setdefault(
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
        of_kind = found[row["purgatory"], row["kind"]]
        of_kind["pending_max"] = max(of_kind["pending_max"], row["pending_max"])
    return sorted(found.values(), key=lambda row: (-row["operations"], row["purgatory"], row["kind"]))
