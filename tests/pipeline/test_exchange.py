"""One pass over files, whose rows are condensed and merged in the workers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from purgatory.journal.schema import CHECKS, OPERATIONS
from purgatory.pipeline import exchange
from purgatory.pipeline.exchange import (
    Part,
    columns,
    condense,
    dealt,
    found_in,
    gather,
    map_files,
    merge,
    rows_of,
)
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.sql import MINUTE_US
from tests.pipeline.journals import ROWS, add_segment, operation


def counted(rows: pa.Table) -> pa.Table:
    """How often each combination of values occurs."""
    counts = rows.group_by(rows.column_names).aggregate([([], "count_all")])
    return counts.select([*rows.column_names, "count_all"]).rename_columns([*rows.column_names, "count"])


def summed(counts: pa.Table) -> pa.Table:
    names = [name for name in counts.column_names if name != "count"]
    sums = counts.group_by(names).aggregate([("count", "sum")]).select([*names, "count_sum"])
    return sums.rename_columns([*names, "count"])


KINDS: Final = Part(
    "kinds", OPERATIONS, columns(OPERATIONS, "purgatory", "kind"), counted, ("kind", "purgatory"), summed
)
TRIES: Final = Part("tries", OPERATIONS, columns(OPERATIONS, "tries"), counted, ("tries",), summed)
KEYS: Final = Part("keys", CHECKS, columns(CHECKS, "key"), counted, ("key",), summed)


def counts(table: pa.Table) -> dict[tuple[object, ...], int]:
    """The last column by the others."""
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert len({row[:-1] for row in rows}) == len(rows)
    return {row[:-1]: row[-1] for row in rows}


@pytest.fixture
def journal(tmp_path: Path) -> dict[str, list[str]]:
    """The paths of files with a hundred operations and three checks."""
    draw = random.Random(5)
    rows = [
        operation(number, purgatory=draw.choice("pq"), kind=draw.choice("abc"), tries=draw.randint(1, 20))
        for number in range(100)
    ]
    checks = [ROWS[CHECKS] | {"key": key} for key in "kkl"]
    return {
        OPERATIONS: [
            str(add_segment(tmp_path, "one", rows[:70])),
            str(add_segment(tmp_path, "two", rows[70:])),
        ],
        CHECKS: [str(add_segment(tmp_path, "three", checks, table=CHECKS))],
    }


def test_each_group_is_merged_by_one_task(
    journal: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_CHUNK", 30)
    tables = {path: table for table, paths in journal.items() for path in paths}
    parts = [KINDS, TRIES, KEYS]
    # Each of three tasks reads one file.
    exchanged = [each for path in tables for each in condense(parts, 4, tables, rows_of, [path])]
    assert {task for task, _ in exchanged} == {0, 1, 2, 3}
    found: dict[str, list[pa.Table]] = {part.name: [] for part in parts}
    for own in range(4):
        for name, rows in merge(parts, [each for each in exchanged if each[0] == own]):
            found[name].append(rows)
    whole = {name: counts(pa.concat_tables(tables)) for name, tables in found.items()}
    assert sum(whole["kinds"].values()) == sum(whole["tries"].values()) == 100
    assert len(whole["kinds"]) == 6
    assert whole["keys"] == {("k",): 2, ("l",): 1}


def test_spark_gathers_what_all_parts_have_found(
    spark: Spark, journal: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # More tasks than files.
    monkeypatch.setattr(exchange, "_TASK_SIZE", 1000)
    found = gather(spark, journal, [KINDS, KEYS])
    assert counts(found["keys"]) == {("k",): 2, ("l",): 1}
    assert sum(counts(found["kinds"]).values()) == 100


def test_without_files_a_part_has_its_columns_and_no_rows(spark: Spark) -> None:
    found = gather(spark, {OPERATIONS: []}, [TRIES])["tries"]
    assert (found.column_names, found.num_rows) == (["tries", "count"], 0)


def test_minutes_are_spread_over_the_tasks() -> None:
    minutes = pa.table({"minute_us": [number * MINUTE_US for number in range(8000)]})
    part = Part("minutes", "minutes", minutes.schema, lambda rows: rows, ("minute_us",), lambda rows: rows)
    exchanged = condense([part], 8, {"path": "minutes"}, lambda path, columns: iter([minutes]), ["path"])
    of_task = {task: rows.num_rows for task, (_, rows) in exchanged}
    assert len(of_task) == 8
    assert min(of_task.values()) > 800
    assert sum(of_task.values()) == 8000


def test_each_file_is_read_whole(spark: Spark, journal: dict[str, list[str]]) -> None:
    schema = columns(OPERATIONS, "kind", "tries")
    assert [each["rows"].to_pylist() for each in found_in(schema, numbered, journal[OPERATIONS])] == [
        [70],
        [30],
    ]
    found = map_files(spark, journal[OPERATIONS], schema, numbered)
    assert sorted(found["rows"].to_pylist()) == [0, 30, 70]
    assert map_files(spark, [], schema, numbered)["rows"].to_pylist() == [0]


def numbered(rows: pa.Table) -> pa.Table:
    assert rows.schema == columns(OPERATIONS, "kind", "tries")
    return pa.table({"rows": [rows.num_rows]})


def test_each_task_gets_large_and_small_files(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    def tasks(sizes: dict[str, int]) -> list[list[str]]:
        return dealt(spark, sizes).collect()

    assert tasks({"a": 1, "b": 9, "c": 3, "d": 5}) == [["b", "c"], ["d", "a"]]
    assert tasks({"a": 1}) == [["a"]]
    assert tasks({}) == [[]]
    monkeypatch.setattr(exchange, "_TASK_SIZE", 6)
    assert len(tasks({"a": 1, "b": 9, "c": 3, "d": 5})) == 3
