"""A journal's directory, and what is in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Rows = list[dict[str, Any]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the journal is to be; it is not there yet."""
    return tmp_path / "service" / "journal"


@pytest.fixture
def segments(directory: Path) -> Callable[[str], list[Rows]]:
    """The rows of each segment of a table, in the order they were written."""

    def read(table: str) -> list[Rows]:
        found = sorted(each for each in (directory / table).iterdir() if not each.name.startswith("."))
        return [pq.read_table(each).to_pylist() for each in found]

    return read


@pytest.fixture
def rows(segments: Callable[[str], list[Rows]]) -> Callable[[str], Rows]:
    """All rows of a table."""
    return lambda table: [row for segment in segments(table) for row in segment]
