"""All messages that are still to come, found without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from purgatory.delayed.disk import Disk, File
from purgatory.delayed.frame import ENDS, HEADER_SIZE, SOON, Damage, parse_body, read_frame, scan
from purgatory.delayed.layout import Checkpoint
from purgatory.delayed.log import segment_numbers
from purgatory.delayed.message import Message
from purgatory.delayed.schedule import END
from purgatory.delayed.slot_files import SlotFiles

# Bytes of a message's frame besides its payload and its id.
_EXTRA: Final = HEADER_SIZE + 2
# Messages of a piece, and bytes after which it ends early.
_MESSAGES: Final = 1_000
_BYTES: Final = 1 << 23


class Place(NamedTuple):
    """A message: its due time in ms, the bytes of its payload and its id, and where it is.

    `segment` is the segment of the log, or 0 for a slot file.
    """

    token: int
    due: int
    length: int
    segment: int
    offset: int


class Pending:
    """Reads what is pending in a directory that may be in use.

    The log is read first, by `read_log`, and then the slot files. A message that moves on meanwhile is found
    in both places, and counted once. So nothing is missed that was pending when `read_log` was called. What
    ends or comes meanwhile may be missing or not. Memory is needed for the log, and for one slot.

    A file that is being written has an incomplete end. That is no damage. What else is damaged goes to
    `damaged`: a description, and which bytes.
    """

    def __init__(
        self, disk: Disk, store: Path, salt: int, slots: SlotFiles, damaged: Callable[[str, Damage], None]
    ) -> None:
        self._disk = disk
        self._wal = store / "wal"
        self._salt = salt
        self._slots = slots
        self._damaged = damaged
        self.segments = 0
        self.log_bytes = 0
        self._ended: set[int] = set()
        self._in_log: dict[int, Place] = {}

    def read_log(self, checkpoint: Checkpoint) -> list[Place]:
        """The messages that are in the log and not in the slot files, as far as `checkpoint` says."""
        for number in segment_numbers(self._disk, self._wal):
            file = None
            if number > checkpoint.emptied:
                file = self._open(number, 0)
            if file is None:
                # It has just been removed, or is about to be.
                continue
            self.segments += 1
            self.log_bytes += file.size
            try:
                for frame in scan(self._salt, file.read):
                    if isinstance(frame, Damage):
                        if frame.end < file.size:
                            self._damaged(f"segment {number} of the log", frame)
                    elif frame.kind in ENDS:
                        self._ended.add(frame.token)
                        self._in_log.pop(frame.token, None)
                    elif frame.kind == SOON or number > checkpoint.spread:
                        self._in_log[frame.token] = Place(
                            frame.token, frame.due, len(frame.data) - _EXTRA, number, frame.offset
                        )
            finally:
                file.close()
        return list(self._in_log.values())

    def messages(self, checkpoint: Checkpoint) -> Iterator[list[Message]]:
        """All messages, some at a time. One that has ended meanwhile may be left out."""
        yield from self._pieces(iter(self.read_log(checkpoint)))
        for slot in self.slots():
            yield from self._pieces(self.read_slot(slot))

    def _pieces(self, places: Iterator[Place]) -> Iterator[list[Message]]:
        """The messages of the slot file or of the segments, one of which is open at a time."""
        home: tuple[int, int] | None = None
        file: File | None = None
        piece: list[Message] = []
        size = 0
        try:
            for place in places:
                slot = 0 if place.segment else self._slots.slot_of(place.due)
                if home != (place.segment, slot):
                    home = (place.segment, slot)
                    if file is not None:
                        file.close()
                    file = self._open(*home)
                frame = None if file is None else read_frame(self._salt, file.read, place.offset)
                if frame is None:
                    # It has moved on, if it was in the log, and is in a slot file.
                    self._in_log.pop(place.token, None)
                    continue
                piece.append(Message(frame.token, frame.due, *parse_body(frame.body)))
                size += place.length
                if len(piece) == _MESSAGES or size >= _BYTES:
                    yield piece
                    piece, size = [], 0
        finally:
            if file is not None:
                file.close()
        if piece:
            yield piece

    def _open(self, segment: int, slot: int) -> File | None:
        if segment:
            return self._disk.open_existing(self._wal / f"{segment:08}")
        return self._slots.open(slot)

    def slots(self) -> list[int]:
        """The slots that have a file, in order."""
        return self._slots.present(END)

    def read_slot(self, slot: int) -> Iterator[Place]:
        """The messages that are in a slot file alone."""
        content = self._slots.content(slot)
        for damage in content.damaged:
            if damage.end < content.size:
                self._damaged(f"the file of slot {slot}", damage)
        for token, due, length, offset in content.pending():
            if not (token in self._ended or token in self._in_log):
                yield Place(token, due, length - _EXTRA, 0, offset)
