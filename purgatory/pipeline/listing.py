"""The segments of a journal, as they lie in its directories."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from purgatory.pipeline.errors import PipelineError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of a journal, as it was when its directory was listed."""

    # The name is unique. It stays the same when the journal is moved.
    name: str
    path: str
    # In bytes.
    size: int
    # When it was last changed.
    modified: datetime


def segments(journal: str, table: str) -> Sequence[Segment]:
    """The files of one table, by name; see `files`. If several files have one name, returns the largest.

    The smaller files may be incomplete copies.
    """
    found = {file.name: file for file in sorted(files(journal, table), key=lambda file: file.size)}
    return [found[name] for name in sorted(found)]


def files(journal: str, table: str) -> Sequence[Segment]:
    """The files of one table, by path. `journal` is a directory, or a pattern for several directories.

    Leaves out files that are not complete. The name of a complete file ends in ``.parquet``, and begins
    neither with a dot nor with an underscore. Raises PipelineError if no directory has this table.
    """
    found = []
    for folder in _folders(journal, table):
        for entry in os.scandir(folder):
            if entry.name.startswith((".", "_")) or not entry.name.endswith(".parquet"):
                continue
            # The file may be moved meanwhile.
            with suppress(FileNotFoundError):
                status = entry.stat()
                if stat.S_ISREG(status.st_mode):
                    modified = _instant(status.st_mtime_ns)
                    found.append(Segment(entry.name, entry.path, status.st_size, modified))
    return sorted(found, key=lambda file: file.path)


def _folders(journal: str, table: str) -> Sequence[str]:
    journals = [journal] if os.path.isdir(journal) else sorted(glob.glob(journal))
    folders = [
        folder for each in journals if os.path.isdir(folder := os.path.join(os.path.abspath(each), table))
    ]
    if not folders:
        raise PipelineError(f"{journal}: not a journal, it has no directory {table!r}")
    return folders


def _instant(nanoseconds: int) -> datetime:
    """An instant of Unix time, in whole microseconds."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
