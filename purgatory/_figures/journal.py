"""The figure of a journal: the rows that it has lost."""

from __future__ import annotations

from typing import Final, Protocol

from purgatory._figures.figure import Metric


class Journal(Protocol):
    """A journal that counts the rows it has lost, such as `purgatory.journal.JournalWriter`."""

    @property
    def lost_operations(self) -> int: ...

    @property
    def lost_checks(self) -> int: ...


LOST_ROWS: Final = Metric(
    "purgatory_journal_lost_rows",
    "Rows that the journal has lost.",
    "purgatory.journal.lost_rows",
    "{row}",
    counter=True,
)


def lost_rows(journal: Journal) -> dict[str, int]:
    """By the names of the tables."""
    return {"operations": journal.lost_operations, "checks": journal.lost_checks}
