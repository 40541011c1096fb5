"""Where messages are that have not ended: in a file, and by due time."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import chain
from typing import Final

from purgatory.delayed.message import Location
from purgatory.delayed.storage.frames import Damage, Frame, unhurried

# A position in a slot file is an offset. A position in the log is this bit, the segment and the offset.
_IN_LOG: Final = 1 << 63
# A segment ends after 16 MiB and one commit.
_OFFSET_BITS: Final = 28
# Bytes of a token.
_TOKEN: Final = 8


def position_in(segment: int, offset: int) -> int:
    """The position of a frame in the log."""
    return _IN_LOG | segment << _OFFSET_BITS | offset


def home_of(position: int) -> int:
    """The segment of the log in which the position is; 0 for a slot file."""
    return (position ^ _IN_LOG) >> _OFFSET_BITS if position & _IN_LOG else 0


def offset_of(position: int) -> int:
    """The offset of the position in its file."""
    return position & (1 << _OFFSET_BITS) - 1 if position & _IN_LOG else position


# Due time, position, token, and the bytes of payload and id.
Place = tuple[int, int, int, int]


class Found:
    """The messages of one slot, in the order of their file, and the tokens of messages that have `ended`.

    It takes 28 bytes of memory for each message, and 8 for each end. `damaged` are the bytes that cannot be
    read, of the `size` bytes of a slot file. It is `torn` if anything was damaged, also what another block
    has replaced.
    """

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.damaged: list[Damage] = []
        self.torn = False
        self._columns = (array("q"), array("Q"), array("Q"), array("I"))
        self.ended = array("Q")

    def __len__(self) -> int:
        """How many messages there are, with the messages that have ended."""
        return len(self._columns[0])

    def add(self, frame: Frame, position: int) -> None:
        dues, positions, tokens, lengths = self._columns
        dues.append(frame.due)
        positions.append(position)
        tokens.append(frame.token)
        lengths.append(frame.length)

    def drop(self, first: int) -> None:
        """Forget the messages from the index `first` on."""
        for column in self._columns:
            del column[first:]

    def pending(self) -> Iterator[Place]:
        """The messages that have not ended."""
        ended = set(unhurried(self.ended))
        for message in unhurried(zip(*self._columns, strict=True)):
            token = message[2]
            if token not in ended:
                yield message
                if self.torn:
                    # A block whose start was lost is not known to be replaced: its messages are there twice.
                    ended.add(token)


class _Moment:
    """The messages of one millisecond, in order. The first `taken` of them are gone."""

    __slots__ = ("positions", "taken", "tokens")

    def __init__(self) -> None:
        self.positions = array("Q")
        self.tokens = array("Q")
        self.taken = 0

    def find(self, token: int) -> int:
        """The index of a token; -1 if it is not there. It compares bytes, which is fast."""
        tokens = self.tokens.tobytes()
        wanted = token.to_bytes(_TOKEN, sys.byteorder)
        at = tokens.find(wanted, self.taken * _TOKEN)
        while at >= 0 and at % _TOKEN:
            at = tokens.find(wanted, at + 1)
        return at // _TOKEN


class Agenda:
    """The positions and tokens of messages, by the millisecond in which they are due: 16 bytes for each.

    Messages of the same millisecond keep their order. Adding and taking a message cost O(log milliseconds).
    """

    def __init__(self, contents: Iterable[Found] = ()) -> None:
        self._moments: dict[int, _Moment] = {}
        # A heap.
        self._dues: list[int] = []
        self._count = 0
        for found in contents:
            for due, position, token, _ in found.pending():
                self.put(due, position, token)

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

    def put(self, due: int, position: int, token: int) -> None:
        moment = self._moment(due)
        moment.positions.append(position)
        moment.tokens.append(token)
        self._count += 1

    def add(self, other: Agenda) -> None:
        """Put in all messages of another agenda, from which nothing was taken."""
        for due, added in other._moments.items():
            moment = self._moment(due)
            moment.positions.extend(added.positions)
            moment.tokens.extend(added.tokens)
        self._count += len(other)

    def remove(self, due: int, token: int) -> Location | None:
        """Take out the message with this token; None if it is not there. It searches the millisecond."""
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

    def homes(self) -> Counter[int]:
        """How many messages are in each segment of the log. The segment 0 stands for a slot file."""
        positions = chain.from_iterable(moment.positions for moment in self._moments.values())
        return Counter(map(home_of, positions))

    def _moment(self, due: int) -> _Moment:
        moment = self._moments.get(due)
        if moment is None:
            moment = self._moments[due] = _Moment()
            heappush(self._dues, due)
        return moment
