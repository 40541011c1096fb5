"""The messages that are due soon, by due time: where they are, and not what is in them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from heapq import heappop, heappush


class Agenda:
    """The positions of messages, by the millisecond in which they are due: 8 bytes for each.

    Messages of the same millisecond keep their order. Adding and taking cost O(log milliseconds).
    """

    def __init__(self) -> None:
        self._positions: dict[int, array[int]] = {}
        # How many of a millisecond's positions were taken.
        self._taken: dict[int, int] = {}
        self._dues: list[int] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Agenda of {self._count}, next due {self.next_due}>"

    @property
    def next_due(self) -> int | None:
        """The earliest due time in milliseconds; None if there is none."""
        while self._dues:
            due = self._dues[0]
            if self._taken.get(due, 0) < len(self._positions[due]):
                return due
            # All of it was taken or removed.
            heappop(self._dues)
            del self._positions[due]
            self._taken.pop(due, None)
        return None

    def add(self, due: int, positions: Iterable[int]) -> None:
        present = self._positions.get(due)
        if present is None:
            present = self._positions[due] = array("Q")
            heappush(self._dues, due)
        before = len(present)
        present.extend(positions)
        self._count += len(present) - before

    def remove(self, due: int, position: int) -> None:
        """Take out one position. Raises ValueError if it is not there."""
        positions = self._positions.get(due, array("Q"))
        del positions[positions.index(position, self._taken.get(due, 0))]
        self._count -= 1

    def at(self, due: int) -> list[tuple[int, int]]:
        """All due times and positions of one millisecond. They stay."""
        positions = self._positions.get(due, ())
        return [(due, position) for position in positions[self._taken.get(due, 0) :]]

    def take(self, until: int, limit: int) -> list[tuple[int, int]]:
        """Take up to `limit` due times and positions that are due until `until`, the earliest first."""
        taken: list[tuple[int, int]] = []
        while len(taken) < limit and (due := self.next_due) is not None and due <= until:
            positions, start = self._positions[due], self._taken.get(due, 0)
            stop = min(len(positions), start + limit - len(taken))
            taken += [(due, position) for position in positions[start:stop]]
            self._taken[due] = stop
        self._count -= len(taken)
        return taken
