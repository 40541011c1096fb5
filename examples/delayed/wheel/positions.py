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


def load_positions(path: Path) -> Positions | None:
    """The positions that were stored last; None if there are none. Raises ValueError for a damaged file."""
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return Positions(int(stored["records"]), int(stored["done"]))


def store_positions(path: Path, positions: Positions) -> None:
    """Replace the file. It has these positions, or the ones before, after a crash at any point."""
    written = path.with_suffix(".new")
    with written.open("wb") as file:
        file.write(json.dumps(positions._asdict()).encode())
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
