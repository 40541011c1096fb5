"""All messages that are still to come, found without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from purgatory.delayed.message import Location, Message
from purgatory.delayed.storage.checkpoint import Checkpoint
from purgatory.delayed.storage.frames import ENDS, HEADER_SIZE, SOON, Damage, scan
from purgatory.delayed.storage.index import position_in
from purgatory.delayed.storage.log import Log
from purgatory.delayed.storage.reader import read_messages
from purgatory.delayed.storage.slots import SlotFiles

# Bytes of a message's frame besides its payload and its id.
_EXTRA: Final = HEADER_SIZE + 2


class Place(NamedTuple):
    """Where a message is, and the bytes of its payload and its id."""

    due: int
    position: int
    token: int
    length: int


class Pending:
    """Reads what is pending in a directory that may be in use.

    The log is read first, by `read_log`, and then the slot files. A message that moves on meanwhile is found
    in both places, and counted once. So nothing is missed that was pending when `read_log` was called. What
    ends or comes meanwhile may be missing or not. Memory is needed for the log, and for one slot.

    A file that is being written has an incomplete end. That is no damage. What else is damaged goes to
    `report`: a description, and which bytes.
    """

    def __init__(self, log: Log, slots: SlotFiles, report: Callable[[str, Damage], None]) -> None:
        self._log = log
        self._slots = slots
        self._report = report
        self.segments = 0
        self.log_bytes = 0
        self._ended: set[int] = set()
        # By token, the messages of the log that the slot files need not have.
        self._in_log: dict[int, Place] = {}

    def read_log(self, checkpoint: Checkpoint) -> list[Place]:
        """The messages that are in the log and not in the slot files, as far as `checkpoint` says."""
        for number in self._log.numbers():
            file = self._log.open(number) if number > checkpoint.emptied else None
            if file is None:
                # It has just been removed, or is about to be.
                continue
            self.segments += 1
            self.log_bytes += file.size
            with file:
                for frame in scan(self._log.salt, file.read):
                    if isinstance(frame, Damage):
                        if frame.end < file.size:
                            self._report(f"segment {number} of the log", frame)
                    elif frame.kind in ENDS:
                        self._ended.add(frame.token)
                        self._in_log.pop(frame.token, None)
                    elif frame.kind == SOON or number > checkpoint.spread:
                        position = position_in(number, frame.offset)
                        length = len(frame.data) - _EXTRA
                        self._in_log[frame.token] = Place(frame.due, position, frame.token, length)
        return list(self._in_log.values())

    def read_slot(self, slot: int) -> Iterator[Place]:
        """The messages that are in a slot file alone."""
        found = self._slots.find(slot)
        for damage in found.damaged:
            if damage.end < found.size:
                self._report(f"the file of slot {slot}", damage)
        for due, position, token, length in found.pending():
            if not (token in self._ended or token in self._in_log):
                yield Place(due, position, token, length - _EXTRA)

    def messages(self, checkpoint: Checkpoint) -> Iterator[Message]:
        """All messages. One that has ended meanwhile may be left out. Raises OSError."""
        for location, message in read_messages(self._log, self._slots, self._locations(checkpoint)):
            if isinstance(message, OSError):
                raise message
            if message is None:
                # It has moved on, if it was in the log, and is in a slot file.
                self._in_log.pop(location.token, None)
            else:
                yield message

    def _locations(self, checkpoint: Checkpoint) -> Iterator[Location]:
        for place in self.read_log(checkpoint):
            yield Location(*place[:3])
        for slot in self._slots.present():
            for place in self.read_slot(slot):
                yield Location(*place[:3])
