"""All messages that are still to come, found without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

from purgatory.delayed.message import Location, Message
from purgatory.delayed.storage.agenda import Place, home_of, offset_of, position_in
from purgatory.delayed.storage.checkpoint import Checkpoint
from purgatory.delayed.storage.disk import File
from purgatory.delayed.storage.frames import ENDS, SOON, Damage, parse_body, read_frame, scan
from purgatory.delayed.storage.log import Log
from purgatory.delayed.storage.slots import SlotFiles

Progress = Callable[[int, int], None]
"""Is told how many slot files were read, and how many there are."""

# Files that are open at a time. A process may often open 1,024 in all.
_OPEN: Final = 16


@dataclass(eq=False, repr=False)
class Pending:
    """Reads what is pending in a directory that may be in use.

    The log is read first, and then the slot files. A message that moves on meanwhile is found in both places,
    and counted once. So nothing is missed that was pending when the log was read. What ends or comes
    meanwhile may be missing or not. Memory is needed for the log, and for one slot.

    A file that is being written has an incomplete end. That is no damage. What else is damaged goes to
    `report`: a description, and which bytes.
    """

    log: Log
    slots: SlotFiles
    report: Callable[[str, Damage], None]
    progress: Progress = lambda read, total: None

    def __post_init__(self) -> None:
        self._ended: set[int] = set()
        # By token, the messages of the log that the slot files need not have.
        self._in_log: dict[int, Place] = {}

    def places(self, checkpoint: Checkpoint) -> Iterator[Place]:
        """Where all messages are."""
        yield from self._read_log(checkpoint)
        slots = self.slots.present()
        for number, slot in enumerate(slots):
            self.progress(number, len(slots))
            yield from self._read_slot(slot)

    def messages(self, checkpoint: Checkpoint) -> Iterator[Message]:
        """All messages. One that has ended meanwhile may be left out. Raises OSError."""
        locations = (Location(*place[:3]) for place in self.places(checkpoint))
        for location, message in read_messages(self.log, self.slots, locations):
            if isinstance(message, OSError):
                raise message
            if message is None:
                # It has moved on, if it was in the log, and is in a slot file.
                self._in_log.pop(location.token, None)
            else:
                yield message

    def _read_log(self, checkpoint: Checkpoint) -> list[Place]:
        """The messages that are in the log and not in the slot files, as far as `checkpoint` says."""
        for number in self.log.numbers():
            file = self.log.open(number) if number > checkpoint.emptied else None
            if file is None:
                # It has just been removed, or is about to be.
                continue
            with closing(file):
                for frame in scan(self.log.salt, file.read):
                    if isinstance(frame, Damage):
                        if frame.end < file.size:
                            self.report(f"segment {number} of the log", frame)
                    elif frame.kind in ENDS:
                        self._ended.add(frame.token)
                        self._in_log.pop(frame.token, None)
                    elif frame.kind == SOON or number > checkpoint.spread:
                        position = position_in(number, frame.offset)
                        self._in_log[frame.token] = (frame.due, position, frame.token, frame.length)
        return list(self._in_log.values())

    def _read_slot(self, slot: int) -> Iterator[Place]:
        """The messages that are in a slot file alone."""
        found = self.slots.find(slot)
        for damage in found.damaged:
            if damage.end < found.size:
                self.report(f"the file of slot {slot}", damage)
        for place in found.pending():
            if not (place[2] in self._ended or place[2] in self._in_log):
                yield place


def read_messages(
    log: Log, slots: SlotFiles, locations: Iterable[Location]
) -> Iterator[tuple[Location, Message | OSError | None]]:
    """The messages at these locations.

    None stands for a message that is damaged, or whose file has gone. An OSError stands for a message that
    cannot be read now.
    """
    # By segment of the log and slot, of which one is 0.
    files: dict[tuple[int, int], File | None] = {}
    with ExitStack() as stack:
        for location in locations:
            due, position, _, failures = location
            home = home_of(position)
            slot = 0 if home else slots.slot_of(due)
            try:
                if (home, slot) not in files:
                    if len(files) == _OPEN:
                        stack.close()
                        files.clear()
                    file = log.open(home) if home else slots.open(slot)
                    files[home, slot] = None if file is None else stack.enter_context(closing(file))
                file = files[home, slot]
                frame = None if file is None else read_frame(log.salt, file.read, offset_of(position))
            except OSError as error:
                yield location, error
                continue
            message = frame and Message(frame.token, frame.due, *parse_body(frame.body), position, failures)
            yield location, message
