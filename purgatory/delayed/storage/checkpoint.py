"""The two files that say how to read the others: the format of a store, and its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from purgatory.delayed.storage.disk import Disk

_VERSION: Final = 1
RESTORE: Final = "restore the whole directory from a copy"


class Format(NamedTuple):
    """The length of a slot in milliseconds, and a random number that all checksums start with."""

    slot_ms: int
    salt: int


class Checkpoint(NamedTuple):
    """How far the log has moved on.

    What is due later is in the slot files, up to the segment `spread`. What was due soon is there, too, up to
    the segment `emptied`. `spread` is behind the last segment while a long log moves as a whole.
    """

    spread: int = 0
    emptied: int = 0


def read_format(disk: Disk, store: Path) -> Format | None:
    """The format of a store; None if the directory is none.

    Raises ValueError for another version, and for a damaged file.
    """
    line = _read(disk, store / "format")
    if line is None:
        return None
    fields = json.loads(line)
    if fields["version"] != _VERSION:
        raise ValueError(
            f"{store} has format {fields['version']}; this release reads {_VERSION}: "
            "open it with the release that wrote it"
        )
    return Format(fields["slot_ms"], fields["salt"])


def write_format(disk: Disk, store: Path, format: Format) -> None:
    _write(disk, store / "format", json.dumps({"version": _VERSION, **format._asdict()}))


def read_checkpoint(disk: Disk, store: Path) -> Checkpoint:
    """How far the log has moved on. Raises ValueError for a file that is damaged or missing.

    Without it nobody knows which messages of the log are in the slot files.
    """
    path = store / "checkpoint"
    line = _read(disk, path)
    if line is None:
        raise ValueError(f"{path} is missing: {RESTORE}")
    return Checkpoint(*map(int, line.split()))


def write_checkpoint(disk: Disk, store: Path, checkpoint: Checkpoint) -> None:
    _write(disk, store / "checkpoint", f"{checkpoint.spread} {checkpoint.emptied}")


def _write(disk: Disk, path: Path, line: str) -> None:
    disk.replace(path, f"{line}\n{crc32(line.encode()):08x}\n".encode())


def _read(disk: Disk, path: Path) -> str | None:
    """The line of a file, whose checksum is in a second line. Raises ValueError if it is damaged."""
    content = disk.read(path)
    if content is None:
        return None
    line, _, checksum = content.partition(b"\n")
    if checksum != b"%08x\n" % crc32(line):
        raise ValueError(f"{path} is damaged: it has {content!r}; {RESTORE}")
    return line.decode()
