"""The two files that say how to read the others: the format of a store, and its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple, Self
from zlib import crc32

from purgatory.delayed.storage.disk import Disk

_VERSION: Final = 1
RESTORE: Final = "restore the whole directory from a copy"


class Format(NamedTuple):
    """The length of a slot in milliseconds, and a random number that all checksums start with."""

    slot_ms: int
    salt: int

    @classmethod
    def read(cls, disk: Disk, store: Path) -> Self | None:
        """None if the directory is no store. Raises ValueError for another version, or a damaged file."""
        line = _read(disk, store / "format")
        if line is None:
            return None
        fields = json.loads(line)
        if fields["version"] != _VERSION:
            raise ValueError(
                f"{store} has format {fields['version']}; this release reads {_VERSION}: "
                "open it with the release that wrote it"
            )
        return cls(fields["slot_ms"], fields["salt"])

    def write(self, disk: Disk, store: Path) -> None:
        _write(disk, store / "format", json.dumps({"version": _VERSION, **self._asdict()}))


class Checkpoint(NamedTuple):
    """How far the log has moved on.

    What is due later is in the slot files, up to the segment `spread`. What was due soon is there, too, up to
    the segment `emptied`. `spread` is after the last segment while a long log moves as a whole.
    """

    spread: int = 0
    emptied: int = 0

    @classmethod
    def read(cls, disk: Disk, store: Path) -> Self:
        """Raises ValueError if it is damaged or missing: nobody knows then which messages have moved on."""
        line = _read(disk, store / "checkpoint")
        if line is None:
            raise ValueError(f"{store / 'checkpoint'} is missing: {RESTORE}")
        return cls(*map(int, line.split()))

    def write(self, disk: Disk, store: Path) -> None:
        _write(disk, store / "checkpoint", f"{self.spread} {self.emptied}")


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
