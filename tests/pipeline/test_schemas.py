"""The pipeline's tables agree with those of the journal."""

from __future__ import annotations

import pytest

from purgatory.journal.schema import SCHEMAS
from purgatory.pipeline.schemas import TABLES, Table


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_has_the_columns_of_the_journal_and_then_its_date(table: Table) -> None:
    recorded = SCHEMAS[table.name]
    assert table.columns.remove(len(recorded)) == recorded
    assert table.columns.names == [*recorded.names, "date"]
    assert {table.instant, *table.order_by, *table.identity} <= set(table.columns.names)


def test_every_table_of_the_journal_is_compacted() -> None:
    assert [table.name for table in TABLES] == list(SCHEMAS)
