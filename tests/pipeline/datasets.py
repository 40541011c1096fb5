"""Datasets with any rows that a test needs, as `compact` and the other commands leave them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import Transaction

from purgatory.pipeline.batches import Batches, BatchFiles
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.schemas import Table
from purgatory.pipeline.tables import DerivedTable
from tests.pipeline.journals import NOON, Row
from tests.pipeline.journals import segment as segment_of


def listed(table: Table, batch: int, rows: int) -> Row:
    """The row about a segment, all of whose rows are kept. It is the only one of its batch."""
    return {
        "table": table.name,
        "name": f"{batch}.parquet",
        "source": f"/journal/{table.name}/{batch}.parquet",
        "size": 1,
        "modified": NOON,
        "rows": rows,
        "kept": rows,
        "duplicates": 0,
        "quarantined": 0,
        "reason": None,
        "batch": batch,
    }


def add_batch(dataset: Dataset, table: Table, rows: pa.Table | Sequence[Row]) -> None:
    """Add the rows of one segment, which has no others."""
    batches = Batches(dataset, table)
    own = rows if isinstance(rows, pa.Table) else segment_of(table.name, list(rows))
    files = dataset.table(table).write_table(own)
    segment = listed(table, batches.last + 1, sum(file.rows for file in files))
    segments = dataset.segments.write_rows([segment])
    batches.commit(BatchFiles(rows=files, quarantine=[], segments=segments))


def derive(dataset: Dataset, table: DerivedTable, rows: Sequence[Row], run: int = 1) -> None:
    """Make a table of a command, in one of its runs. Columns that a row lacks are null."""
    stored = dataset.derived(table)
    stored.replace(stored.write_rows(rows), Transaction("run", run))


def rows_of_run(dataset: Dataset, tables: Sequence[DerivedTable]) -> dict[str, list[Row]]:
    """The rows of the tables of a command. Empty if one run has not made all tables."""
    logs = dataset.logs_of_run(tables)
    return {table.name: dataset.derived(table).rows(log).to_pylist() for table, log in logs.items()}
