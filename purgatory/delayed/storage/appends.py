"""Data that goes to the ends of several files, or to none."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from purgatory.delayed.storage.disk import Disk, File

# Files that are open and synced at a time. A process may often open 1,024 in all.
_OPEN: Final = 128


class Appends:
    """Appends to files in a ``with`` block. All of it is on the disk behind the block.

    When an OSError leaves the block, because a file found no room, all of it is taken back. Otherwise each
    attempt on a full disk would leave something, and take the room that others need.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._sizes: list[tuple[Path, int]] = []
        # Not synced yet.
        self._files: list[File] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Sync the files, or take back what was appended. What stays nevertheless is harmless."""
        if exception is None:
            self._sync()
        self._close()
        if isinstance(exception, OSError):
            for path, size in self._sizes:
                with suppress(OSError):
                    self._disk.truncate(path, size)

    def append(self, path: Path, data: bytes | bytearray, alignment: int = 1) -> int:
        """Append `data` to a file, behind zeros up to the alignment.

        Returns the new size of the file. Raises OSError.
        """
        file = self._disk.open(path)
        self._files.append(file)
        self._sizes.append((path, file.size))
        file.append(bytes(-file.size % alignment) + data)
        size = file.size
        if len(self._files) == _OPEN:
            self._sync()
        return size

    def _sync(self) -> None:
        try:
            self._disk.sync_files(self._files)
        finally:
            self._close()

    def _close(self) -> None:
        for file in self._files:
            file.close()
        self._files.clear()
