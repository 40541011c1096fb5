"""Where the messages of a file are, as far as they have not ended."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from purgatory.delayed.storage.frames import Damage, Frame, unhurried

# A position in a slot file is an offset. A position in the log is this bit, the segment and the offset.
_IN_LOG: Final = 1 << 63
# A segment ends after 16 MiB and one commit.
_OFFSET_BITS: Final = 28


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
    """The messages of one slot, in the order of their file, and which messages have ended.

    It takes 28 bytes of memory for each message, and 8 for each end. `damaged` are the bytes that cannot be
    read, of the `size` bytes of a slot file. It is `torn` if anything was damaged, also what another block
    has replaced.
    """

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.damaged: list[Damage] = []
        self.torn = False
        self._columns = (array("q"), array("Q"), array("Q"), array("I"))
        self._ended = array("Q")

    def __len__(self) -> int:
        """How many messages there are, with the messages that have ended."""
        return len(self._columns[0])

    def add(self, frame: Frame, position: int) -> None:
        dues, positions, tokens, lengths = self._columns
        dues.append(frame.due)
        positions.append(position)
        tokens.append(frame.token)
        lengths.append(frame.length)

    def end(self, frame: Frame) -> None:
        self._ended.append(frame.token)

    def drop(self, first: int) -> None:
        """Forget the messages from the index `first` on."""
        for column in self._columns:
            del column[first:]

    def pending(self) -> Iterator[Place]:
        """The messages that have not ended."""
        ended = set(unhurried(self._ended))
        for message in unhurried(zip(*self._columns, strict=True)):
            token = message[2]
            if token not in ended:
                yield message
                if self.torn:
                    # A block whose start was lost is not known to be replaced: its messages are there twice.
                    ended.add(token)
