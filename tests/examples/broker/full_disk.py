"""A disk on which a write fails, after a part of it."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

_pwrite = os.pwrite


@contextmanager
def full_disk(room: int = 0) -> Iterator[None]:
    """Let the segments grow by ``room`` bytes, and then no file any more."""
    left = room

    def pwrite(descriptor: int, data: memoryview, position: int) -> int:
        nonlocal left
        if not left:
            raise _no_space()
        written = _pwrite(descriptor, data[:left], position)
        left -= written
        return written

    def write_text(path: Path, text: str) -> int:
        raise _no_space()

    with patch.object(os, "pwrite", pwrite), patch.object(Path, "write_text", write_text):
        yield


def _no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
