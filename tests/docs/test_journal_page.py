"""What docs/journal.md says of the files is true."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from purgatory import Purgatory
from purgatory.journal import JournalWriter
from purgatory.journal.schema import SCHEMAS
from purgatory.journal.writer import MAX_BUFFERED, MAX_ROWS, MAX_SECONDS
from tests.docs.programs import DOCS
from tests.operations import Gate

PAGE = (DOCS / "journal.md").read_text()


def description_of(table: str) -> list[str]:
    """The rows of the page's table for this table of the journal."""
    return PAGE.partition(f"| `{table}` |")[2].partition("\n\n")[0].splitlines()


@pytest.mark.parametrize("table", SCHEMAS)
def test_every_column_is_explained(table: str) -> None:
    explained = [name for row in description_of(table) for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert explained == SCHEMAS[table].names


@pytest.mark.parametrize("table", SCHEMAS)
def test_nullable_columns_and_timestamps_are_marked(table: str) -> None:
    for field in SCHEMAS[table]:
        row = next(row for row in description_of(table) if f"`{field.name}`" in row)
        assert ("or null" in row) is field.nullable
        assert ("UTC" in row) is pa.types.is_timestamp(field.type)


def test_the_defaults_are_those_of_the_writer() -> None:
    for name, value in (("max_rows", MAX_ROWS), ("max_seconds", MAX_SECONDS), ("max_buffered", MAX_BUFFERED)):
        assert f"| `{name}` | {value:,.0f} |" in PAGE


def test_pyarrow_and_duckdb_leave_out_unfinished_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve() -> None:
        async with (
            JournalWriter(tmp_path / "journal") as journal,
            Purgatory(observers=[journal]) as purgatory,
        ):
            purgatory.try_complete_else_watch(Gate(opened=True), ["key"])

    asyncio.run(serve())
    # The process has crashed while it wrote this one.
    (tmp_path / "journal" / "operations" / ".half.parquet.unfinished").write_bytes(b"PAR1")
    monkeypatch.chdir(tmp_path)

    assert ds.dataset("journal/operations", format="parquet").count_rows() == 1
    query = PAGE.partition("DuckDB:\n\n```sql\n")[2].partition("```")[0]
    [(kind, outcome, count, _)] = duckdb.execute(query).fetchall()
    assert (kind, outcome, count) == ("Gate", "completed", 1)


def test_purgatory_does_not_need_the_extra() -> None:
    code = "import sys, purgatory, purgatory.testing; raise SystemExit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
