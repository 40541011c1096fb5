"""The segments of a journal, as they lie in its folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import blake2b, file_digest
from typing import Final

import pyarrow as pa

from purgatory.journal.schema import SCHEMAS
from purgatory.pipeline import locations
from purgatory.pipeline.errors import PipelineError

_HASH: Final = partial(blake2b, digest_size=16)


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of a journal, as it was when its folder was listed."""

    # Its address. No folder in it is a symbolic link.
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
        """The address as text."""
        return text_of(self.path)

    def digest(self) -> str:
        """The digest of the bytes that the file has now."""
        with locations.opened(self.path) as file:
            return file_digest(file, _HASH).hexdigest()


def digest_of(content: pa.Buffer) -> str:
    """The digest of the bytes of a file. Files with the same digest have the same bytes."""
    return _HASH(content).hexdigest()


def text_of(path: str) -> str:
    """A path as text that can be stored. Bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def segments(journal: str, table: str) -> Sequence[Segment]:
    """The files of one table, by path. `journal` is a folder, or a pattern for several folders.

    A file is listed once, also if several links lead to it. Leaves out files that are not complete. The name
    of a complete file ends in ``.parquet``, and begins neither with a dot nor with an underscore.
    Raises PipelineError if no folder is a journal.
    """
    found: dict[str, Segment] = {}
    for folder in _folders(journal, table):
        for file in locations.files_in(folder):
            name = os.path.basename(file.address)
            if name.endswith(".parquet") and not name.startswith((".", "_")):
                found.setdefault(locations.real(file.address), Segment(*file))
    return sorted(found.values(), key=lambda segment: segment.path)


def journals(journal: str) -> Sequence[str]:
    """The journals that an address or a pattern names, without links. Each journal is there once."""
    found = locations.folders(journal)
    return [each for each in found if any(locations.is_folder(f"{each}/{table}") for table in SCHEMAS)]


def _folders(journal: str, table: str) -> Sequence[str]:
    named = journals(journal)
    if not named:
        locations.check_bucket(journal)
        raise PipelineError(f"{journal}: not a journal, it has no directory {table!r}")
    tables = (locations.real(f"{each}/{table}") for each in named)
    # What copies a journal into a store leaves out empty folders.
    return [folder for folder in dict.fromkeys(tables) if locations.is_folder(folder)]
