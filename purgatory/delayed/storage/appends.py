"""Data that goes to the ends of several files, or to none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from purgatory.delayed.storage.disk import Disk, File

# Files that are open and synced at a time. A process may often open 1,024 in all.
_OPEN: Final = 128


Append = Callable[[Path, bytes | bytearray, int], int]
"""Appends data to a file, after zeros up to an alignment. Returns the new size of the file."""


@contextmanager
def appending(disk: Disk) -> Iterator[Append]:
    """Appends data to files. All data is on the disk after the ``with`` block.

    When an OSError leaves the block, because a file found no room, all data is taken back. Otherwise each
    attempt on a full disk would leave a part, and take the room that others need.
    """
    sizes: list[tuple[Path, int]] = []
    # Not synced yet.
    files: list[File] = []

    def close() -> None:
        while files:
            files.pop().close()

    def sync() -> None:
        try:
            disk.sync_files(files)
        finally:
            close()

    def append(path: Path, data: bytes | bytearray, alignment: int) -> int:
        file = disk.open(path)
        files.append(file)
        sizes.append((path, file.size))
        file.append(bytes(-file.size % alignment) + data)
        size = file.size
        if len(files) == _OPEN:
            sync()
        return size

    try:
        yield append
        sync()
    except OSError:
        close()
        # If some data stays, it is harmless.
        for path, size in reversed(sizes):
            with suppress(OSError):
                disk.truncate(path, size)
        raise
    finally:
        close()
