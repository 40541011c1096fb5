"""The files of the wheel: one for each slot in which a message is due."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep

from purgatory.delayed.appends import Appends
from purgatory.delayed.disk import Disk, File
from purgatory.delayed.frame import BLOCK, ENDS, MESSAGES, PAUSE, STRETCH, Damage, Frame, encode, scan
from purgatory.delayed.schedule import HOUR, slot_of


@dataclass(frozen=True, slots=True)
class SlotIndex:
    """The messages of a slot file that are still to come.

    `offsets` and `tokens` have those of each frame, by due time in milliseconds since the epoch, in the
    file's order.
    """

    count: int = 0
    offsets: dict[int, array[int]] = field(default_factory=dict)
    tokens: dict[int, array[int]] = field(default_factory=dict)
    damaged: list[Damage] = field(default_factory=list)


@dataclass(slots=True)
class SlotContent:
    """All messages of a slot file of `size` bytes, in the file's order: 28 bytes of memory for each.

    `lengths` are those of the frames. `ended` has the tokens of those that were cancelled or
    delivered.
    """

    size: int
    dues: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    tokens: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("I"))
    ended: set[int] = field(default_factory=set)
    damaged: list[Damage] = field(default_factory=list)
    # Whether anything was damaged, also what another block has replaced.
    torn: bool = False

    def add(self, frame: Frame) -> None:
        self.dues.append(frame.due)
        self.offsets.append(frame.offset)
        self.tokens.append(frame.token)
        self.lengths.append(len(frame.data))

    def pending(self) -> Iterator[tuple[int, int, int, int]]:
        """Token, due time, length and offset of each message that has not ended. It can be called once."""
        for message in zip(self.tokens, self.dues, self.lengths, self.offsets, strict=True):
            token = message[0]
            if token not in self.ended:
                yield message
                if self.torn:
                    # A block whose start was lost is not known to be replaced: its messages are there twice.
                    self.ended.add(token)

    def drop(self, first: int) -> None:
        """Forget the messages from the index `first` on."""
        for column in (self.dues, self.offsets, self.tokens, self.lengths):
            del column[first:]


class SlotFiles:
    """Files ``slots/<hour>/<start>`` of a wheel with a single level.

    A slot is `slot_ms` milliseconds long. Its file is named by the hour and by the millisecond at which the
    slot starts, both since the epoch. So the wheel never turns: a slot is used once, a delay may have any
    length, and a store that was closed for a year still has each slot in its place.

    A slot file consists of blocks. A block has the frames of some segments of the log. A crash may leave a
    part of a block; then the whole block follows, and takes the place of that part.
    """

    def __init__(self, disk: Disk, directory: Path, salt: int, slot_ms: int) -> None:
        self._disk = disk
        self._directory = directory
        self._salt = salt
        self.slot_ms = slot_ms
        # Bytes written since the files were opened.
        self.written = 0

    def slot_of(self, due: int) -> int:
        """The slot of a due time. All times before 1970 are in the first slot."""
        return slot_of(due, self.slot_ms)

    def write(
        self, number: int, after: int, slots: Mapping[int, Iterable[bytes | bytearray]], appends: Appends
    ) -> None:
        """Append a block to each of the slot files, from the segments (after, number] of the log.

        All of it is on the disk at the end of `appends`. Raises OSError when it cannot be written; then it
        may be written again.
        """
        header = encode(self._salt, BLOCK, number, after)
        hours: set[Path] = set()
        for slot, frames in slots.items():
            path = self._path(slot)
            if path.parent not in hours:
                self._disk.make_directory(path.parent)
                hours.add(path.parent)
            data = b"".join((header, *frames))
            appends.append(path, data)
            self.written += len(data)
        for hour in hours:
            self._disk.sync_directory(hour)

    def present(self, before: int) -> list[int]:
        """The slots below `before` that have a file, in order."""
        slots = []
        last = before * self.slot_ms // HOUR
        for hour in self._disk.names(self._directory):
            if hour.isdigit() and int(hour) <= last:
                for start in self._disk.names(self._directory / hour):
                    if start.isdigit() and int(start) // self.slot_ms < before:
                        slots.append(int(start) // self.slot_ms)
        slots.sort()
        return slots

    def index(self, slot: int) -> SlotIndex:
        """Read through a slot file once. What was cancelled or delivered is left out.

        All frames are read before a message is delivered, because a cancellation comes behind its message.
        Meanwhile it takes 28 bytes of memory for each message, and then 16.
        """
        content = self.content(slot)
        offsets: defaultdict[int, array[int]] = defaultdict(_column)
        tokens: defaultdict[int, array[int]] = defaultdict(_column)
        count = 0
        for token, due, _, offset in content.pending():
            offsets[due].append(offset)
            tokens[due].append(token)
            count += 1
            if count % STRETCH == 0:
                sleep(PAUSE)
        return SlotIndex(count, offsets, tokens, content.damaged)

    def content(self, slot: int) -> SlotContent:
        """What a slot file holds; nothing if there is no such file."""
        file = self.open(slot)
        if file is None:
            return SlotContent(0)
        content = SlotContent(file.size)
        damaged = content.damaged
        # The blocks so far: the last segment of each, and its first message.
        blocks: list[tuple[int, int]] = []
        try:
            for frame in scan(self._salt, file.read):
                if isinstance(frame, Damage):
                    damaged.append(frame)
                    content.torn = True
                elif frame.kind in MESSAGES:
                    content.add(frame)
                elif frame.kind in ENDS:
                    content.ended.add(frame.token)
                elif frame.kind == BLOCK:
                    if damaged and damaged[-1].end == frame.offset and blocks and blocks[-1][0] > frame.token:
                        # It is the torn end of a block that this one replaces.
                        damaged.pop()
                    while blocks and blocks[-1][0] > frame.token:
                        _, first = blocks.pop()
                        content.drop(first)
                    blocks.append((frame.due, len(content.dues)))
        finally:
            file.close()
        return content

    def open(self, slot: int) -> File | None:
        """The file of a slot, to read from it."""
        return self._disk.open_existing(self._path(slot))

    def exists(self, slot: int) -> bool:
        file = self.open(slot)
        if file is not None:
            file.close()
        return file is not None

    def remove(self, slot: int) -> None:
        """Remove the file of a slot, and the directory of its hour when that is empty.

        The log is about to forget that the messages were delivered.
        """
        path = self._path(slot)
        self._disk.remove(path)
        self._disk.remove_directory(path.parent)

    def _path(self, slot: int) -> Path:
        start = slot * self.slot_ms
        return self._directory / str(start // HOUR) / str(start)


def _column() -> array[int]:
    return array("Q")
