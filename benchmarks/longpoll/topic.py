"""What clients poll."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """What the server has done, for all topics together."""

    # How often a poll has looked whether there is something for it.
    looks: int = 0
    # The polls that wait now.
    waiting: int = 0


class Topic:
    """A log of records, each for everybody or for one client. To look whether there is news is O(1)."""

    __slots__ = ("_newest", "_newest_for", "_records", "_tally", "name")

    def __init__(self, name: str, tally: Tally) -> None:
        self.name = name
        self._tally = tally
        self._records: list[tuple[str | None, str]] = []
        # The ends of the log behind the last record for everybody, and behind the last for each client.
        self._newest = 0
        self._newest_for: dict[str, int] = {}

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return len(self._records)

    def append(self, value: str, to: str | None) -> None:
        """Add a record, for one client or, without, for everybody."""
        self._records.append((to, value))
        if to is None:
            self._newest = self.end
        else:
            self._newest_for[to] = self.end

    def has_news(self, client: str, offset: int) -> bool:
        """Whether there is a record for this client from `offset` on."""
        self._tally.looks += 1
        return self._newest > offset or self._newest_for.get(client, 0) > offset

    def news(self, client: str, offset: int) -> list[str]:
        """The records for this client from `offset` on."""
        return [value for to, value in self._records[offset:] if to is None or to == client]
