"""The directory of a cluster, which one process uses at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UnusableDirectory(Exception):
    """Raised when a cluster cannot start with a directory. The message says why, and what to do."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Make the directory if there is none, and lock it until the block or the process ends.

    Raises UnusableDirectory when another process has it, or when it cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UnusableDirectory(f"{error}; choose another --data") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UnusableDirectory(
                f"another process uses {directory}; stop it, or choose another --data"
            ) from None
        yield
    finally:
        os.close(lock)
