"""The two files that say how to read the others: the format of a store, and its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

from purgatory.delayed.disk import Disk

VERSION: Final = 1


class Format(NamedTuple):
    """The length of a slot in milliseconds, and a random number that all checksums start with."""

    slot_ms: int
    salt: int


class Checkpoint(NamedTuple):
    """How far the log has moved on.

    Up to the segment `spread`, what is due later is in the slot files. Up to the segment `emptied`, so is
    what was due soon.
    """

    spread: int = 0
    emptied: int = 0


def read_format(disk: Disk, store: Path) -> Format | None:
    """The format of a store; None if the directory is none.

    Raises ValueError for another version, and for a damaged file.
    """
    content = _read(disk, store / "format")
    if content is None:
        return None
    try:
        fields = json.loads(content)
        if fields["version"] == VERSION:
            return Format(fields["slot_ms"], fields["salt"])
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"{store / 'format'} is damaged: {content!r}") from None
    raise ValueError(f"{store} has format {fields['version']}; this release reads {VERSION}")


def write_format(disk: Disk, store: Path, format: Format) -> None:
    disk.replace(store / "format", json.dumps({"version": VERSION, **format._asdict()}).encode())


def read_checkpoint(disk: Disk, store: Path) -> Checkpoint:
    """How far the log has moved on. Raises ValueError for a damaged file."""
    content = _read(disk, store / "checkpoint")
    if content is None:
        return Checkpoint()
    try:
        spread, emptied = map(int, content.split())
    except ValueError:
        raise ValueError(f"{store / 'checkpoint'} is damaged: {content!r}") from None
    return Checkpoint(spread, emptied)


def write_checkpoint(disk: Disk, store: Path, checkpoint: Checkpoint) -> None:
    disk.replace(store / "checkpoint", b"%d %d\n" % checkpoint)


def _read(disk: Disk, path: Path) -> bytes | None:
    file = disk.open_existing(path)
    if file is None:
        return None
    try:
        return file.read(0, file.size)
    finally:
        file.close()
