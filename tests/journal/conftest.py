"""The directory of a journal, the rows in it, and a fake disk under it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.journal.fakes import Disk

Row = dict[str, Any]
Rows = Callable[[str], list[Row]]
Segments = Callable[[str], list[list[Row]]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The path of the journal. The directory does not exist yet."""
    return tmp_path / "service" / "journal"


@pytest.fixture
def segments(directory: Path) -> Segments:
    """The rows of each segment of a table, in the order in which the segments were written."""

    def read(table: str) -> list[list[Row]]:
        paths = sorted(path for path in (directory / table).iterdir() if not path.name.startswith("."))
        return [pq.read_table(path).to_pylist() for path in paths]

    return read


@pytest.fixture
def rows(segments: Segments) -> Rows:
    """All rows of a table."""
    return lambda table: [row for segment in segments(table) for row in segment]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk.fsync)
    yield disk
    disk.free.set()
