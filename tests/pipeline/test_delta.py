"""Delta tables whose files Arrow writes."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from purgatory.pipeline.delta import DataFile, StoredTable
from purgatory.pipeline.errors import PipelineError

INSTANT = pa.timestamp("us", "UTC")
COLUMNS = pa.schema([("id", pa.int64()), ("at", INSTANT), ("date", pa.date32())])
FIRST, SECOND = (datetime(2026, 3, day, 23, 59, 59, 999_999, UTC) for day in (1, 2))


@pytest.fixture
def table(tmp_path: Path) -> StoredTable:
    return StoredTable(f"{tmp_path}/of a journal é/table", COLUMNS, dated_by="at")


def rows_of(*rows: tuple[int, datetime]) -> pa.Table:
    columns = [[number for number, _ in rows], [at for _, at in rows]]
    return pa.table(columns, schema=COLUMNS.remove(2))


def write(table: StoredTable, *rows: tuple[int, datetime]) -> list[str]:
    """Write and commit rows. Returns the dates of the files."""
    files = table.write_table(rows_of(*rows))
    table.append(table.create(), files, Transaction("test", 1))
    return [str(file.date) for file in files]


def numbers(table: StoredTable, log: DeltaTable | None = None) -> list[int]:
    return sorted(table.rows(log)["id"].to_pylist())


def test_rows_are_read_once_they_are_committed(table: StoredTable) -> None:
    assert numbers(table) == []
    assert write(table, (1, FIRST), (2, SECOND), (3, SECOND)) == ["2026-03-01", "2026-03-02"]
    table.write_table(rows_of((4, FIRST)))
    assert numbers(table) == [1, 2, 3]
    assert len(table.paths()) == 2
    (path,) = table.paths({SECOND.date()})
    assert "date=2026-03-02" in path
    assert table.paths(set()) == []
    rows = table.rows().sort_by("id")
    assert rows.schema == COLUMNS
    assert rows["date"].to_pylist() == [FIRST.date(), SECOND.date(), SECOND.date()]


def test_a_log_that_is_open_gives_the_rows_of_its_version(table: StoredTable) -> None:
    write(table, (1, FIRST))
    log = table.log()
    write(table, (2, FIRST))
    assert numbers(table, log=log) == [1]
    assert numbers(table) == [1, 2]


def test_a_file_knows_its_rows_and_its_size(table: StoredTable) -> None:
    (file,) = table.write_table(rows_of(*[(1, FIRST)] * 3))
    status = os.stat(os.path.join(table.path, file.path))
    assert (file.rows, file.size, file.modified) == (3, status.st_size, status.st_mtime_ns // 1_000_000)


def test_there_is_a_file_for_each_date_and_none_without_rows(table: StoredTable) -> None:
    rows = pa.table({"id": [3, 2, 1], "at": [FIRST, SECOND, FIRST], "other": [0, 0, 0]})
    files = table.write_table(rows)
    assert [(file.date, file.rows) for file in files] == [("2026-03-01", 2), ("2026-03-02", 1)]
    table.append(table.create(), files, Transaction("test", 1))
    assert table.rows().sort_by("id").to_pylist() == [
        {"id": 1, "at": FIRST, "date": FIRST.date()},
        {"id": 2, "at": SECOND, "date": SECOND.date()},
        {"id": 3, "at": FIRST, "date": FIRST.date()},
    ]
    undated = StoredTable(f"{table.path}-undated", pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    assert [file.rows for file in undated.write_table(rows)] == [3]
    assert undated.write_table(rows.slice(0, 0)) == []
    with pytest.raises(ValueError, match="id"):
        undated.write_table(pa.table({"id": pa.array([None], pa.int64())}))


def test_if_writing_fails_no_file_is_left(table: StoredTable) -> None:
    table.create()
    before = sorted(Path(table.path).iterdir())
    with pytest.raises(ValueError, match="Failed to parse string: 'x'"):
        table.write_table(
            pa.table({"id": [1, 2], "at": [FIRST, SECOND]}).set_column(0, "id", pa.array(["1", "x"]))
        )
    assert sorted(Path(table.path).iterdir()) == before


def test_the_folders_with_the_token_of_a_table_can_be_removed(table: StoredTable) -> None:
    rows = pa.table({"id": [1], "at": [FIRST]})
    (other,) = table.write_table(rows)
    tagged = replace(table, token="mine-")
    (one,), (two,) = tagged.write_table(rows), tagged.write_table(rows)
    assert tagged.folders() == {one.folder, two.folder}
    tagged.remove(tagged.folders() - {two.folder})
    left = {path.name for path in Path(table.path).iterdir()}
    assert left == {other.folder, two.folder}
    # Without a token it is not known which folders are whose.
    assert table.folders() == set()


def test_rows_in_an_order_are_in_one_file_with_nulls_first(tmp_path: Path) -> None:
    table = StoredTable(f"{tmp_path}/table", pa.schema([("id", pa.int64()), ("at", INSTANT)]))
    rows = [(2, SECOND), (None, SECOND), (2, None), (1, FIRST), (2, FIRST)]
    unordered = pa.table({"at": [at for _, at in rows], "id": [number for number, _ in rows]})
    (file,) = table.write_in_order(unordered, ("id", "at"))
    assert pq.read_table(f"{table.path}/{file.path}").to_pylist() == [
        {"id": None, "at": SECOND},
        {"id": 1, "at": FIRST},
        {"id": 2, "at": None},
        {"id": 2, "at": FIRST},
        {"id": 2, "at": SECOND},
    ]
    assert table.write_in_order(unordered.slice(0, 0), ("id",)) == []


def test_of_two_transactions_of_an_application_one_is_refused(table: StoredTable) -> None:
    one, other = table.create(), table.create()
    table.append(one, [], Transaction("compact", 1))
    assert one.version() == 1
    with pytest.raises(CommitFailedError):
        table.append(other, [], Transaction("compact", 1))
    table.append(other, [], Transaction("another", 1))
    assert table.transaction("compact") == 1


def test_a_transaction_is_known_from_a_checkpoint_of_the_log(table: StoredTable) -> None:
    assert table.transaction("compact") == 0
    log = table.create()
    table.append(log, [], Transaction("compact", 7))
    log.create_checkpoint()
    for commit in Path(table.path, "_delta_log").glob("*.json"):
        commit.unlink()
    assert table.transaction("compact") == 7


def evolved(table: StoredTable) -> StoredTable:
    """The table as a later version declares it: with one more column."""
    return StoredTable(table.path, COLUMNS.append(pa.field("more", pa.int64())), dated_by="at")


def test_a_table_that_lacks_a_column_is_read_with_nulls_and_gets_the_column_when_it_is_written(
    table: StoredTable,
) -> None:
    write(table, (1, FIRST))
    newer = evolved(table)
    assert newer.rows()["more"].to_pylist() == [None]
    assert newer.log().version() == 1
    files = newer.write_table(pa.table({"id": [2], "at": [FIRST], "more": [7]}))
    newer.append(newer.create(), files, Transaction("test", 2))
    assert newer.create().version() == 3
    rows = newer.rows().sort_by("id").to_pylist()
    assert [(row["id"], row["more"]) for row in rows] == [(1, None), (2, 7)]
    others = DeltaTable(Path(table.path).as_uri()).to_pyarrow_table(columns=["id", "more"]).sort_by("id")
    assert others.to_pylist() == [{"id": 1, "more": None}, {"id": 2, "more": 7}]
    newer.log().optimize.compact()
    assert newer.rows().sort_by("id")["more"].to_pylist() == [None, 7]


def test_of_two_processes_that_add_a_column_one_adds_it(
    table: StoredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create()
    newer = evolved(table)
    stale = newer.log()
    newer.create()
    logs = iter([stale, newer.log()])
    monkeypatch.setattr(StoredTable, "log", lambda table: next(logs))
    assert newer.create().version() == 1


def test_a_table_with_a_column_of_a_newer_version_is_read_and_written_without_it(
    table: StoredTable,
) -> None:
    evolved(table).create()
    write(table, (1, FIRST))
    assert table.rows().schema == COLUMNS
    assert evolved(table).rows()["more"].to_pylist() == [None]


def test_a_small_table_that_lacks_a_column_has_nulls(tmp_path: Path) -> None:
    older = StoredTable(f"{tmp_path}/table", pa.schema([("id", pa.int64())]))
    older.replace(older.write_rows([{"id": 1}]), Transaction("run", 1))
    newer = StoredTable(older.path, older.columns.append(pa.field("more", pa.int64())))
    assert newer.rows().to_pylist() == [{"id": 1, "more": None}]
    newer.replace(newer.write_rows([{"id": 2, "more": 3}]), Transaction("run", 2))
    assert newer.rows().to_pylist() == [{"id": 2, "more": 3}]
    assert older.rows().to_pylist() == [{"id": 2}]


@pytest.mark.parametrize(
    "other", [pa.field("id", INSTANT), pa.field("more", pa.int64(), nullable=False)], ids=str
)
def test_a_table_whose_columns_do_not_fit_is_refused(table: StoredTable, other: pa.Field) -> None:
    table.create()
    columns = [field for field in COLUMNS if field.name != other.name]
    changed = StoredTable(table.path, pa.schema([*columns, other]), dated_by="at")
    with pytest.raises(
        PipelineError, match="another version of purgatory wrote this table, with the columns id, at"
    ):
        changed.log()
    # Replacing it makes it a table of this version.
    changed.replace([], Transaction("run", 1))
    assert changed.log().version() == 1
    with pytest.raises(PipelineError, match="another version of purgatory"):
        table.log()


def test_an_earlier_version_of_a_table_can_be_read(table: StoredTable) -> None:
    write(table, (1, FIRST))
    table.replace([], Transaction("run", 1))
    assert numbers(table) == []
    assert DeltaTable(Path(table.path).as_uri(), version=1).to_pyarrow_table().num_rows == 1


def test_a_worker_gives_the_files_that_it_has_written_as_rows(table: StoredTable) -> None:
    found = table.write_in_worker(rows_of((1, FIRST), (2, SECOND))).to_pylist()
    files = [DataFile(**row) for row in found]
    assert [(file.date, file.rows) for file in files] == [("2026-03-01", 1), ("2026-03-02", 1)]
    table.append(table.create(), files, Transaction("test", 1))
    assert numbers(table) == [1, 2]
    assert table.write_in_worker(rows_of()).num_rows == 0
