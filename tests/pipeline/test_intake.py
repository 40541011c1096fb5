"""Taking segments into a dataset, without Spark: the part that runs in the workers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline import intake
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import DataFile, StoredTable
from purgatory.pipeline.intake import Intake, ReadSegment, take_in
from purgatory.pipeline.listing import digest_of
from purgatory.pipeline.schemas import OPERATIONS_TABLE
from purgatory.pipeline.transforms.duplicates import Positions
from purgatory.pipeline.transforms.segments import content_of, rows_in
from tests.pipeline.journals import NOON, Row, add_segment, operation, segment


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(f"{tmp_path}/dataset")


def take(
    dataset: Dataset,
    *paths: Path,
    read: dict[str, int] | None = None,
    drop: dict[str, Positions] | None = None,
) -> Intake:
    return sum(
        take_in(dataset, OPERATIONS_TABLE, 7, read or {}, drop or {}, map(str, paths)),
        start=Intake([], [], []),
    )


def digest(path: Path) -> str:
    return digest_of(pa.py_buffer(path.read_bytes()))


def rows(table: StoredTable, file: DataFile) -> list[Row]:
    found: list[Row] = pq.ParquetFile(Path(table.path, file.path)).read().to_pylist()
    return found


def test_rows_are_sorted_and_in_one_file_for_each_date(dataset: Dataset, tmp_path: Path) -> None:
    midnight = NOON + timedelta(hours=12)
    one = add_segment(
        tmp_path,
        "one",
        [operation(1, kind="b"), operation(2, kind="a", started=midnight), operation(3, kind="a")],
    )
    two = add_segment(tmp_path, "two", [operation(4, kind="a", started=NOON - timedelta(seconds=1))])
    taken = take(dataset, one, two)
    assert taken.segments == [
        ReadSegment(str(one), digest=digest(one), kept=3),
        ReadSegment(str(two), digest=digest(two), kept=1),
    ]
    assert taken.quarantine == []
    assert [(file.date, file.rows) for file in taken.rows] == [("2026-03-01", 3), ("2026-03-02", 1)]
    table = dataset.table(OPERATIONS_TABLE)
    found = [[row["operation_id"] for row in rows(table, file)] for file in taken.rows]
    assert found == [[4, 3, 1], [2]]
    assert rows(table, taken.rows[1]) == [operation(2, kind="a", started=midnight)]


def test_refused_rows_and_unreadable_files_are_counted_by_their_reasons(
    dataset: Dataset, tmp_path: Path
) -> None:
    path = add_segment(tmp_path, "one", [operation(1), operation(2, tries=0), operation(3, keys=[None])])
    broken = path.with_name("broken.parquet")
    broken.touch()
    taken = take(dataset, path, broken)
    reasons = {"tries is below 1": 1, "keys holds a null": 1}
    assert taken.segments == [
        ReadSegment(str(path), digest=digest(path), kept=1, refused=reasons),
        ReadSegment(str(broken), problem="unreadable: Parquet file size is 0 bytes"),
    ]
    assert [segment.rows for segment in taken.segments] == [3, None]
    (file,) = taken.quarantine
    first, second = rows(dataset.quarantine, file)
    assert (first["source"], first["position"], first["reason"]) == (str(path), 1, "tries is below 1")
    assert (first["table"], first["batch"]) == ("operations", 7)
    assert json.loads(second["row"]) == operation(3, keys=[None], started="2026-03-01 12:00:00.000000Z")


def test_an_instant_that_python_does_not_have_can_be_refused(dataset: Dataset, tmp_path: Path) -> None:
    path = add_segment(tmp_path, "one", [operation()])
    never = segment(OPERATIONS, [operation()] * 2)
    started = pa.array([(1 << 63) - 1, -(1 << 62)]).cast(pa.timestamp("us", "UTC"))
    never = never.set_column(never.column_names.index("started"), "started", started)
    pq.write_table(never, path)
    taken = take(dataset, path)
    assert taken.segments[0].refused == {"started is not in the years from 1970 to 9998": 2}
    assert taken.rows == []
    assert len(rows(dataset.quarantine, taken.quarantine[0])) == 2


def test_duplicates_are_left_out_and_counted(dataset: Dataset, tmp_path: Path) -> None:
    paths = [
        add_segment(tmp_path, name, [operation(1), operation(2, tries=0, kind=name), operation(3)])
        for name in ("one", "two")
    ]
    taken = take(dataset, *paths, drop={str(paths[1]): np.array([0, 2])})
    assert [(segment.kept, segment.duplicates) for segment in taken.segments] == [(2, 0), (0, 2)]
    assert [segment.rows for segment in taken.segments] == [3, 3]
    assert [file.rows for file in taken.rows] == [2]


def test_copies_of_files_that_were_read_are_left_out_and_counted(dataset: Dataset, tmp_path: Path) -> None:
    read_before = add_segment(tmp_path, "one", [operation(1)] * 3)
    path = add_segment(tmp_path, "two", [operation(2), operation(3, tries=0)])
    taken = take(dataset, read_before, path, read={digest(read_before): 3})
    counts = [(each.copy, each.kept, each.duplicates, each.quarantined) for each in taken.segments]
    assert counts == [(True, 0, 3, 0), (False, 1, 0, 1)]
    assert [each.digest for each in taken.segments] == [digest(read_before), digest(path)]
    assert [file.rows for file in (*taken.rows, *taken.quarantine)] == [1, 1]


def test_a_path_that_is_not_utf8_is_read_and_escaped_in_the_quarantine(
    dataset: Dataset, tmp_path: Path
) -> None:
    written = add_segment(tmp_path, "one", [operation(1), operation(2, tries=0)])
    path = written.rename(written.with_name("caf\udce9.parquet"))
    taken = take(dataset, path)
    assert taken.segments[0].path == str(path)
    (row,) = rows(dataset.quarantine, taken.quarantine[0])
    assert row["source"] == rf"{tmp_path}/operations/caf\xe9.parquet"


def test_rows_are_written_as_soon_as_they_are_too_many_for_the_memory(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [add_segment(tmp_path, f"{number}", [operation(number)]) for number in (1, 2, 3)]
    size = rows_in(content_of(str(paths[0])), OPERATIONS_TABLE).nbytes
    monkeypatch.setattr(intake, "_WRITE_SIZE", 1.5 * size)
    taken = take(dataset, *paths)
    assert [file.rows for file in taken.rows] == [2, 1]
    assert [Path(each.path) for each in taken.segments] == paths


def test_a_segment_without_rows_leaves_no_file(dataset: Dataset, tmp_path: Path) -> None:
    path = add_segment(tmp_path, "one", [])
    assert take(dataset, path) == Intake([ReadSegment(str(path), digest=digest(path))], [], [])


def test_a_worker_without_segments_does_nothing(dataset: Dataset) -> None:
    assert take(dataset) == Intake([], [], [])


def test_dates_are_those_of_utc(dataset: Dataset, tmp_path: Path) -> None:
    latest = datetime(2026, 3, 1, 23, 59, 59, 999_999, UTC)
    taken = take(dataset, add_segment(tmp_path, "one", [operation(started=latest)]))
    assert [file.date for file in taken.rows] == ["2026-03-01"]
    any_row: dict[str, Any] = rows(dataset.table(OPERATIONS_TABLE), taken.rows[0])[0]
    assert any_row["started"] == latest
