"""A fake disk, a key without a text, and what the tests of a journal have in common."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from pathlib import Path
from typing import NoReturn

from purgatory import Purgatory
from tests.operations import Gate


class Disk:
    """A disk that a test can make slow, full, or unable to sync directories. Replaces `os.fsync`."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.full = False
        self.syncs_only_files = False

    def fsync(self, descriptor: int) -> None:
        assert self.free.wait(30), "the test does not set the disk free"
        if self.syncs_only_files and stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")


class UnprintableKey:
    """A key whose str() raises."""

    def __str__(self) -> NoReturn:
        raise ValueError("no words")


def complete(purgatory: Purgatory, times: int = 1) -> None:
    """Offer operations that complete at their first try."""
    for _ in range(times):
        purgatory.try_complete_else_watch(Gate(opened=True), ["key"])


def unfinished(directory: Path) -> list[Path]:
    """The files in a journal that are still being written."""
    return [path for path in directory.rglob(".*") if path.is_file()]


def threads() -> list[str]:
    """The names of the writers' threads."""
    return [thread.name for thread in threading.enumerate() if "journal" in thread.name]


def block_the_loop(seconds: float) -> None:
    """Let real time pass without a turn of the event loop."""
    time.sleep(seconds)
