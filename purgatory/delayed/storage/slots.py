"""The files of the wheel: one for each slot in which a message is due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from purgatory.delayed import schedule
from purgatory.delayed.storage.agenda import Found
from purgatory.delayed.storage.disk import Append, Disk, File
from purgatory.delayed.storage.frames import BLOCK, ENDS, MESSAGES, Damage, encode, scan


class SlotFiles:
    """Files ``slots/<hour>/<start>`` of a wheel with a single level.

    A slot is `slot_ms` milliseconds long. Its file is named by the hour and by the millisecond at which the
    slot starts, both since the epoch. So the wheel never turns: a slot is used once, a delay may have any
    length, and a store that was closed for a year still has each slot in its place.

    A slot file consists of blocks. A block has the frames of some segments of the log. A crash may leave a
    part of a block. Then the whole block follows, and takes the place of that part.

    `written` counts the bytes that were written since the files were opened.
    """

    def __init__(self, disk: Disk, directory: Path, salt: int, slot_ms: int) -> None:
        self._disk = disk
        self._directory = directory
        self._salt = salt
        self.slot_ms = slot_ms
        self.written = 0

    def slot_of(self, due: int) -> int:
        return schedule.slot_of(due, self.slot_ms)

    def write(
        self, number: int, after: int, slots: Mapping[int, Iterable[bytes | bytearray]], append: Append
    ) -> None:
        """Append a block to each of the slot files, from the segments (after, number] of the log."""
        header = encode(self._salt, BLOCK, number, after)
        hours = dict.fromkeys(self._path(slot).parent for slot in slots)
        for hour in hours:
            self._disk.make_directory(hour)
        for slot, frames in slots.items():
            data = b"".join((header, *frames))
            append(self._path(slot), data, 1)
            self.written += len(data)
        for hour in hours:
            self._disk.sync_directory(hour)

    def present(self, before: int = schedule.END) -> list[int]:
        """The slots below `before` that have a file, in order."""
        last = before * self.slot_ms // schedule.HOUR
        return sorted(
            int(start) // self.slot_ms
            for hour in self._disk.names(self._directory)
            if hour.isdigit() and int(hour) <= last
            for start in self._disk.names(self._directory / hour)
            if start.isdigit() and int(start) // self.slot_ms < before
        )

    def find(self, slot: int) -> Found:
        """What a slot file has. It reads the whole file, because a cancellation comes after its message."""
        file = self.open(slot)
        if file is None:
            return Found()
        found = Found(file.size)
        damaged = found.damaged
        # The blocks so far: the last segment of each, and its first message.
        blocks: list[tuple[int, int]] = []
        with closing(file):
            for frame in scan(self._salt, file.read):
                if isinstance(frame, Damage):
                    damaged.append(frame)
                    found.torn = True
                elif frame.kind in MESSAGES:
                    found.add(frame, frame.offset)
                elif frame.kind in ENDS:
                    found.ended.append(frame.token)
                elif frame.kind == BLOCK:
                    if damaged and damaged[-1].end == frame.offset and blocks and blocks[-1][0] > frame.token:
                        # It is the torn end of a block that this one replaces.
                        damaged.pop()
                    while blocks and blocks[-1][0] > frame.token:
                        _, first = blocks.pop()
                        found.drop(first)
                    blocks.append((frame.due, len(found)))
        return found

    def open(self, slot: int) -> File | None:
        return self._disk.open_existing(self._path(slot))

    def exists(self, slot: int) -> bool:
        return self._disk.size(self._path(slot)) is not None

    def remove(self, slot: int) -> None:
        """Remove the file of a slot, and the directory of its hour when that is empty."""
        path = self._path(slot)
        self._disk.remove(path)
        self._disk.remove_directory(path.parent)

    def _path(self, slot: int) -> Path:
        start = slot * self.slot_ms
        return self._directory / str(start // schedule.HOUR) / str(start)
