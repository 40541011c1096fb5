"""A disk that is full while a test wants it so."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from purgatory.delayed.storage.disk import Disk, File


class FullDisk(Disk):
    """A disk on which nothing can be written to the log while it is full."""

    full = False

    def open(self, path: Path) -> File:
        if path.parent.name != "wal":
            return super().open(path)
        return LogFile(os.open(path, os.O_RDWR | os.O_CREAT), self)


class LogFile(File):
    def __init__(self, descriptor: int, disk: FullDisk) -> None:
        super().__init__(descriptor)
        self.disk = disk

    def append(self, data: bytes) -> None:
        if self.disk.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(data)
