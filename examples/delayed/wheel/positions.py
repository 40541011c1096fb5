"""How far an instance has read a partition, in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple


class Positions(NamedTuple):
    """Offsets of the next records to read.

    All records below `records` are on the disk of this instance. All ids below `done` are those of such
    records, and were cleared. So the ids of all other records are at `done` or above, and are read again.
    """

    records: int
    done: int


class PositionsFile:
    """`stored` is what the file has; None if there is no file yet. Raises ValueError for a damaged file."""

    def __init__(self, path: Path) -> None:
        self.stored: Positions | None = None
        self._path = path
        if path.exists():
            stored = json.loads(path.read_bytes())
            self.stored = Positions(int(stored["records"]), int(stored["done"]))

    def store(self, positions: Positions) -> None:
        """Replace the file, unless it has them. After a crash at any point, it has these or those before.

        Raises OSError.
        """
        if positions == self.stored:
            return
        written = self._path.with_suffix(".new")
        with written.open("wb") as file:
            file.write(json.dumps(positions._asdict()).encode())
            file.flush()
            os.fsync(file.fileno())
        written.replace(self._path)
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        self.stored = positions
