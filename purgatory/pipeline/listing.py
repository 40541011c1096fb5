"""The segments of a journal, as they lie in its directories."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b, file_digest
from typing import Final

import pyarrow as pa

from purgatory.journal.schema import SCHEMAS
from purgatory.pipeline.errors import PipelineError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HASH: Final = partial(blake2b, digest_size=16)


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of a journal, as it was when its directory was listed."""

    # No directory in the path is a symbolic link.
    path: str
    # In bytes.
    size: int
    # When it was last changed.
    modified: datetime

    @property
    def name(self) -> str:
        """The name as text."""
        return text_of(os.path.basename(self.path))

    @property
    def source(self) -> str:
        """The path as text."""
        return text_of(self.path)

    def digest(self) -> str:
        """The digest of the bytes that the file has now."""
        with open(self.path, "rb") as file:
            return file_digest(file, _HASH).hexdigest()


def digest_of(content: pa.Buffer) -> str:
    """The digest of the bytes of a file. Files with the same digest have the same bytes."""
    return _HASH(content).hexdigest()


def text_of(path: str) -> str:
    """A path as text that can be stored. Bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def segments(journal: str, table: str) -> Sequence[Segment]:
    """The files of one table, by path. `journal` is a directory, or a pattern for several directories.

    A file is listed once, also if several links lead to it. Leaves out files that are not complete. The name
    of a complete file ends in ``.parquet``, and begins neither with a dot nor with an underscore.
    Raises PipelineError if no directory has this table.
    """
    found: dict[str, Segment] = {}
    for folder in _folders(journal, table):
        # A file comes before the links that lead to it.
        for entry in sorted(os.scandir(folder), key=lambda entry: (entry.is_symlink(), entry.name)):
            if entry.name.startswith((".", "_")) or not entry.name.endswith(".parquet"):
                continue
            segment = _segment(entry)
            if segment is not None:
                found.setdefault(os.path.realpath(entry.path), segment)
    return sorted(found.values(), key=lambda segment: segment.path)


def journals(journal: str) -> Sequence[str]:
    """The real paths of the journals that a path or a pattern names. Each journal is there once."""
    named = [journal] if os.path.isdir(journal) else sorted(glob.glob(journal))
    real = dict.fromkeys(map(os.path.realpath, named))
    return [each for each in real if any(os.path.isdir(os.path.join(each, table)) for table in SCHEMAS)]


def _folders(journal: str, table: str) -> Sequence[str]:
    tables = (os.path.realpath(os.path.join(each, table)) for each in journals(journal))
    folders = [folder for folder in dict.fromkeys(tables) if os.path.isdir(folder)]
    if not folders:
        raise PipelineError(f"{journal}: not a journal, it has no directory {table!r}")
    return folders


def _segment(entry: os.DirEntry[str]) -> Segment | None:
    try:
        status = entry.stat()
    except FileNotFoundError:
        # The file was moved meanwhile.
        return None
    except OSError:
        # To read the file fails, too, and says why.
        return Segment(entry.path, 0, _EPOCH)
    if not stat.S_ISREG(status.st_mode):
        return None
    return Segment(entry.path, status.st_size, _EPOCH + timedelta(microseconds=status.st_mtime_ns // 1000))
