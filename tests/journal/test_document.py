"""docs/journal.md agrees with the code."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from purgatory import Purgatory
from purgatory.journal import JournalWriter
from purgatory.journal.schema import SCHEMAS
from purgatory.journal.writer import MAX_BUFFERED, MAX_ROWS, MAX_SECONDS
from tests.operations import Gate

DOCUMENT = (Path(__file__).parent.parent.parent / "docs" / "journal.md").read_text()


@pytest.mark.parametrize("table", SCHEMAS)
def test_every_column_is_documented(table: str) -> None:
    explained = DOCUMENT.partition(f"| `{table}` |")[2].partition("\n\n")[0]
    named = [name for line in explained.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert named == SCHEMAS[table].names


@pytest.mark.parametrize("table", SCHEMAS)
def test_nullable_columns_and_utc_times_are_documented_as_such(table: str) -> None:
    for field in SCHEMAS[table]:
        explained = DOCUMENT.partition(f"| `{table}` |")[2].partition("\n\n")[0]
        line = next(line for line in explained.splitlines() if f"`{field.name}`" in line)
        assert ("or null" in line) is field.nullable
        assert ("UTC" in line) is pa.types.is_timestamp(field.type)


def test_the_documented_defaults_are_those_of_the_writer() -> None:
    for name, value in (("max_rows", MAX_ROWS), ("max_seconds", MAX_SECONDS), ("max_buffered", MAX_BUFFERED)):
        assert f"| `{name}` | {value:,.0f} |" in DOCUMENT


def test_the_example_for_pyarrow_reads_a_journal(tmp_path: Path) -> None:
    async def serve() -> None:
        async with JournalWriter(tmp_path / "journal") as journal, Purgatory(observers=[journal]) as held:
            held.try_complete_else_watch(Gate(opened=True), ["key"])

    asyncio.run(serve())
    # As after a crash while a segment was being written.
    (tmp_path / "journal" / "operations" / ".half.parquet.unfinished").write_bytes(b"PAR1")
    example = DOCUMENT.partition("pyarrow:\n\n```python\n")[2].partition("```")[0]
    printed = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"kind: .*Gate", printed, re.DOTALL)


def test_purgatory_does_not_need_pyarrow() -> None:
    code = "import sys, purgatory, purgatory.testing; raise SystemExit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
