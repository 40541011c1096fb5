"""What was sent, what has arrived, and whether that is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of records; lateness in milliseconds, at the first arrival of a record."""

    scheduled: int
    cancelled: int
    delivered: int
    early: int
    duplicates: int
    p50: float
    p99: float
    worst: float


class Deliveries:
    """All times are in milliseconds since the epoch. A record may arrive before its sender knows its id."""

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        self._arrivals: dict[str, int] = {}
        self._lateness: list[float] = []
        self._delivered = 0
        # When the cluster has acknowledged the cancel of a record.
        self._cancelled: dict[str, float] = {}
        self._early: list[str] = []
        self._wrong: list[str] = []

    def acknowledge(self, id: str, due: int) -> None:
        """The cluster has taken a record: it must arrive."""
        self._due[id] = due
        self._delivered += id in self._arrivals

    def cancel(self, id: str, now: float) -> None:
        """The cluster has taken a cancel. If the record is due later, it must not arrive; if not, it may."""
        self._cancelled[id] = now

    def arrive(self, id: str, due: int, written: int, now: float) -> None:
        """A record has arrived. `written` is the timestamp that the service has given it."""
        times = self._arrivals[id] = self._arrivals.get(id, 0) + 1
        if written < due:
            self._early.append(id)
        if times == 1:
            self._delivered += id in self._due
            self._lateness.append(now - due)
        if id in self._due and self._due[id] != due:
            self._wrong.append(id)

    @property
    def delivered(self) -> int:
        """How many records have arrived, each counted once."""
        return self._delivered

    @property
    def is_complete(self) -> bool:
        """Whether each acknowledged record has arrived, or is cancelled."""
        return self._delivered + len(self._withheld) == len(self._due)

    @property
    def _withheld(self) -> set[str]:
        """The cancelled records that have not arrived."""
        return self._cancelled.keys() - self._arrivals.keys()

    def figures(self) -> Figures:
        lateness = sorted(self._lateness) or [0.0]
        return Figures(
            scheduled=len(self._due),
            cancelled=len(self._withheld),
            delivered=self._delivered,
            early=len(self._early),
            duplicates=sum(self._arrivals.values()) - len(self._arrivals),
            p50=lateness[len(lateness) // 2],
            p99=lateness[len(lateness) * 99 // 100],
            worst=lateness[-1],
        )

    def faults(self) -> Iterator[str]:
        """What is wrong, in words."""
        missing = self._due.keys() - self._arrivals.keys() - self._withheld
        cancelled = [
            id for id, now in self._cancelled.items() if now < self._due[id] and id in self._arrivals
        ]
        for what, ids in (
            ("were acknowledged and have not arrived", sorted(missing)),
            ("arrived early", self._early),
            ("arrived after an acknowledged cancel", cancelled),
            ("arrived with another due time", self._wrong),
            ("arrived and were not sent", sorted(self._arrivals.keys() - self._due.keys())),
        ):
            if ids:
                yield f"{len(ids)} records {what}, such as {ids[0]}"
