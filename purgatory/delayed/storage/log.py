"""The write-ahead log. A message in it is durable."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Final

from purgatory.delayed.storage.disk import Disk, File
from purgatory.delayed.storage.frames import Damage, Frame, scan

# Bytes after which a segment is sealed.
_SEGMENT: Final = 1 << 24


class Log:
    """Segments ``wal/00000001``, ``wal/00000002`` and so on, which are written one after the other.

    One thread appends and seals. Another thread reads and removes sealed segments. `written` counts the bytes
    that were appended since the log was opened.
    """

    def __init__(self, disk: Disk, directory: Path, salt: int) -> None:
        self._disk = disk
        self._directory = directory
        self.salt = salt
        self.written = 0
        # The segment that grows; None until something is appended to it.
        self._file: File | None = None
        # The number of this segment, or of the last segment before it.
        self._last = 0

    def numbers(self) -> list[int]:
        return sorted(int(name) for name in self._disk.names(self._directory) if name.isdigit())

    def go_on_after(self, number: int) -> None:
        """Let the next segment have a larger number than this one, and than all segments that there are."""
        self._last = max([number, *self.numbers()])

    def append(self, data: bytes) -> tuple[int, int]:
        """Append `data` and sync. Returns the segment and the offset at which it begins.

        Raises as `Store.commit` does. There must be no call after StoreFailed.
        """
        file = self._file
        if file is None or file.size >= _SEGMENT:
            file = self._begin_segment()
        offset = file.size
        try:
            file.append(data)
        finally:
            # Also after an error: no part of the data must come back after a crash.
            file.sync()
        self.written += len(data)
        return self._last, offset

    def _begin_segment(self) -> File:
        self.seal()
        file = self._disk.open(self._path(self._last + 1))
        try:
            # An earlier attempt may have made the file.
            self._disk.sync_directory(self._directory)
        except BaseException:
            file.close()
            raise
        self._file = file
        self._last += 1
        return file

    def seal(self) -> int:
        """End the current segment, also when this raises OSError. Returns the number of the last segment."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
        return self._last

    def open(self, number: int) -> File | None:
        return self._disk.open_existing(self._path(number))

    def read(self, number: int) -> Iterator[Frame | Damage]:
        """The frames of a segment, and what is damaged between them."""
        file = self.open(number)
        if file is not None:
            with closing(file):
                yield from scan(self.salt, file.read)

    def size(self, number: int) -> int:
        return self._disk.size(self._path(number)) or 0

    def rewrite(self, number: int) -> None:
        """Write the last segment again, so that all that can be read of it is on the disk for certain.

        The last commit before a crash may not be synced, or its sync may have failed. The system may show it
        all the same, and a second sync would report no error.
        """
        self._disk.replace(self._path(number), self._disk.read(self._path(number)) or b"")

    def remove_left_over(self) -> None:
        """Remove what a crash has left of a `rewrite`."""
        for name in self._disk.names(self._directory):
            if not name.isdigit():
                self._disk.remove(self._directory / name)

    def remove_oldest(self, through: int, needed: Container[int]) -> None:
        """Remove the oldest segments, up to the segment `through`, until one is `needed`.

        Each is gone from the disk before a later one can go.
        """
        for number in takewhile(lambda number: number <= through and number not in needed, self.numbers()):
            self._disk.remove(self._path(number))

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:08}"
