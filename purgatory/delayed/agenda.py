"""Where the messages are that are due soon, by due time."""

from __future__ import annotations

from heapq import heappop, heappush

from purgatory.delayed.message import Location
from purgatory.delayed.storage.index import Index, Moment


class Agenda:
    """The positions and tokens of messages, by the millisecond in which they are due: 16 bytes for each.

    Messages of the same millisecond keep their order. Adding and taking a message cost O(log milliseconds).
    """

    def __init__(self) -> None:
        self._moments: dict[int, Moment] = {}
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
            moment = self._moments[due]
            if moment.taken < len(moment.positions):
                return due
            # All messages of this moment were taken or removed.
            heappop(self._dues)
            del self._moments[due]
        return None

    @property
    def last_due(self) -> int | None:
        """The latest due time in milliseconds; None if there is none. It searches all milliseconds."""
        return max(self._dues, default=None)

    def add(self, index: Index) -> None:
        for due, added in index.moments.items():
            moment = self._moment(due)
            moment.positions.extend(added.positions)
            moment.tokens.extend(added.tokens)
            self._count += len(added.positions)

    def put(self, location: Location) -> None:
        moment = self._moment(location.due)
        moment.positions.append(location.position)
        moment.tokens.append(location.token)
        self._count += 1

    def remove(self, due: int, token: int) -> Location | None:
        """Take out the message with this token; None if it is not there.

        It searches the tokens of the millisecond, 8 bytes for each.
        """
        moment = self._moments.get(due)
        index = -1 if moment is None else moment.find(token)
        if moment is None or index < 0:
            return None
        self._count -= 1
        del moment.tokens[index]
        return Location(due, moment.positions.pop(index), token)

    def take(self, until: int, limit: int) -> list[Location]:
        """Take up to `limit` messages that are due until `until`, the earliest first."""
        taken: list[Location] = []
        while len(taken) < limit and (due := self.next_due) is not None and due <= until:
            moment = self._moments[due]
            start = moment.taken
            moment.taken = stop = min(len(moment.positions), start + limit - len(taken))
            places = zip(moment.positions[start:stop], moment.tokens[start:stop], strict=True)
            taken += [Location(due, position, token) for position, token in places]
        self._count -= len(taken)
        return taken

    def _moment(self, due: int) -> Moment:
        moment = self._moments.get(due)
        if moment is None:
            moment = self._moments[due] = Moment()
            heappush(self._dues, due)
        return moment
