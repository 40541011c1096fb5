"""Data that goes to the ends of several files, or to none."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from purgatory.delayed.disk import Disk


class Appends:
    """Appends to files, and takes all of it back when one of them finds no room.

    Otherwise each attempt on a full disk would leave something, and take the room that others make.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._sizes: list[tuple[Path, int]] = []

    def append(self, path: Path, data: bytes, alignment: int = 1) -> int:
        """Append `data` to a file, and sync it. The file is filled up with zeros to the alignment before.

        Returns the new size of the file. Raises OSError.
        """
        file = self._disk.open(path)
        try:
            self._sizes.append((path, file.size))
            file.append(bytes(-file.size % alignment) + data)
            file.sync()
            return file.size
        finally:
            file.close()

    def take_back(self) -> None:
        """Cut off what was appended. What stays nevertheless is harmless."""
        for path, size in self._sizes:
            with suppress(OSError):
                self._disk.truncate(path, size)
