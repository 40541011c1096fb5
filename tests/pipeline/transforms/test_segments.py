"""Segments are read whole, or not at all."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from purgatory import __version__
from purgatory.journal.schema import LATER, OPERATIONS, OPERATIONS_SCHEMA, SCHEMAS
from purgatory.journal.table import SCHEMA_VERSION, VERSION_KEY, WRITER_KEY
from purgatory.pipeline import locations
from purgatory.pipeline.schemas import OPERATIONS_TABLE
from purgatory.pipeline.transforms import segments
from purgatory.pipeline.transforms.segments import UnreadableError, content_of, rows_in
from tests.pipeline.journals import operation, segment


def written(rows: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, **options)
    return buffer.getvalue()


def replaced(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """The table with other values in one column."""
    return table.set_column(table.column_names.index(name), name, values)


def read(content: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows_in(pa.py_buffer(content), OPERATIONS_TABLE).to_pylist()
    return found


def problem(content: bytes) -> str:
    """The reason for which a file is unreadable."""
    with pytest.raises(UnreadableError) as raised:
        read(content)
    return str(raised.value)


def test_a_file_has_its_rows_in_their_order() -> None:
    rows = [operation(number) for number in range(5)]
    assert read(written(segment(OPERATIONS, rows))) == rows


def test_rows_with_nulls_are_read() -> None:
    broken = operation(kind=None, keys=[None, "k"], tries=None, started=None)
    assert read(written(segment(OPERATIONS, [broken]))) == [broken]


def test_a_file_without_rows_is_read() -> None:
    assert read(written(segment(OPERATIONS, []))) == []


def test_wider_types_and_additional_columns_are_accepted() -> None:
    table = segment(OPERATIONS, [operation()])
    table = replaced(table, "tries", table["tries"].cast(pa.int64()))
    table = replaced(table, "node", table["node"].cast(pa.large_string()))
    (row,) = read(written(table.append_column("more", pa.array([1])), use_deprecated_int96_timestamps=True))
    assert row["tries"] == 1
    assert row["started"] == operation()["started"]
    assert "more" not in row


@pytest.mark.parametrize(
    "listed",
    [
        pa.large_list(pa.large_string()),
        pa.list_(pa.string_view()),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=str,
)
def test_other_encodings_of_text_and_lists_are_accepted(listed: pa.DataType) -> None:
    table = segment(OPERATIONS, [operation(keys=["a", "b"]), operation(keys=[])])
    table = replaced(table, "keys", pa.array([["a", "b"], []], pa.list_(pa.string())).cast(listed))
    for name, text in (("node", pa.dictionary(pa.uint32(), pa.large_string())), ("kind", pa.string_view())):
        table = replaced(table, name, table[name].cast(text))
    first, second = read(written(table))
    assert (first["keys"], second["keys"]) == (["a", "b"], [])
    assert (first["node"], first["kind"]) == ("a", "Fetch")


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"no such thing" * 100], ids=["empty", "short", "no Parquet"]
)
def test_a_file_that_is_not_parquet_is_unreadable(content: bytes) -> None:
    assert problem(content).startswith("unreadable: ")


def test_a_truncated_or_damaged_file_gives_none_of_its_rows() -> None:
    content = written(segment(OPERATIONS, [operation(number) for number in range(1000)]), compression="zstd")
    assert problem(content[:-20]).startswith("unreadable: ")
    middle = len(content) // 4
    assert problem(content[:middle] + bytes(64) + content[middle + 64 :]).startswith("unreadable: ")


def test_a_file_without_a_column_is_unreadable() -> None:
    table = segment(OPERATIONS, [operation()]).drop_columns(["timeout_us", "tries"])
    assert problem(written(table)) == "unreadable: it has no column timeout_us, tries"


def test_a_file_with_a_column_of_another_type_is_unreadable() -> None:
    table = segment(OPERATIONS, [operation()])
    table = replaced(table, "tries", pa.array(["1"]))
    assert problem(written(table)) == "unreadable: its column tries is string, not int32"
    keys = replaced(replaced(table, "tries", pa.array([1])), "keys", pa.array(["k"]))
    assert "its column keys is string" in problem(written(keys))


def test_a_file_with_a_number_out_of_range_is_unreadable() -> None:
    table = segment(OPERATIONS, [operation()])
    assert "unreadable" in problem(written(replaced(table, "tries", pa.array([1 << 40]))))


def test_a_file_with_text_that_is_not_utf8_is_unreadable() -> None:
    table = segment(OPERATIONS, [operation()])
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )
    assert "UTF8" in problem(written(replaced(table, "node", broken)))


def test_a_file_of_another_format_is_unreadable_and_the_reason_names_the_version_that_can_read_it() -> None:
    table = segment(OPERATIONS, [operation()])
    same = table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION)})
    assert len(read(written(same))) == 1
    other = table.replace_schema_metadata({VERSION_KEY: "99", WRITER_KEY: "7.1"})
    assert problem(written(other)) == (
        f"unreadable: purgatory 7.1 wrote it in format 99, and this version, {__version__}, reads format "
        f"{SCHEMA_VERSION}; install that version here"
    )
    unknown = table.replace_schema_metadata({VERSION_KEY: "99"})
    assert "purgatory of another version wrote it in format 99" in problem(written(unknown))


def test_a_column_that_came_later_is_null_in_a_file_that_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    older = segment(OPERATIONS, [operation()])
    columns = OPERATIONS_SCHEMA.append(pa.field("shard", pa.int32()))
    monkeypatch.setitem(SCHEMAS, OPERATIONS, columns)
    assert problem(written(older)) == "unreadable: it has no column shard"
    monkeypatch.setitem(LATER, OPERATIONS, frozenset({"shard"}))
    newer = segment(OPERATIONS, [operation(shard=7)])
    assert [row["shard"] for row in read(written(older)) + read(written(newer))] == [None, 7]
    wrong = older.append_column("shard", pa.array(["7"]))
    assert problem(written(wrong)) == "unreadable: its column shard is string, not int32"


def test_a_lack_of_memory_is_not_an_error_of_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_memory(*_: object) -> pa.Table:
        raise pa.ArrowMemoryError("no memory")

    monkeypatch.setattr(pq, "ParquetFile", no_memory)
    with pytest.raises(MemoryError):
        read(b"")


def test_a_file_that_is_too_large_for_a_worker_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.parquet"
    repeating = segment(OPERATIONS, [operation(node="n" * 5_000)] * 2)
    path.write_bytes(written(repeating, compression="zstd", use_dictionary=False))
    assert path.stat().st_size < 9_000
    monkeypatch.setattr(segments, "LARGEST", 9_000)
    too_large = (
        r"^unreadable: decompressed, it has 1[0-9,]+ bytes, more than 9,000; split it into several files$"
    )
    with pytest.raises(UnreadableError, match=too_large):
        rows_in(content_of(str(path)), OPERATIONS_TABLE)
    monkeypatch.setattr(segments, "LARGEST", 100)
    size = f"{path.stat().st_size:,}"
    with pytest.raises(UnreadableError, match=f"^unreadable: it has {size} bytes, more than 100; split it"):
        content_of(str(path))


def test_a_file_that_the_system_refuses_to_read_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnreadableError, match=r"^unreadable: Is a directory$"):
        content_of(str(tmp_path))

    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(locations, "opened", refuse)
    with pytest.raises(UnreadableError, match=r"^unreadable: Permission denied$"):
        content_of("a.parquet")


def test_a_failure_of_a_store_is_no_fault_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> None:
        raise OSError(f"When reading {path}: AWS Error NETWORK_CONNECTION")

    monkeypatch.setattr(locations, "opened", fail)
    with pytest.raises(OSError, match="NETWORK_CONNECTION"):
        content_of("s3://bucket/a.parquet")


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        content_of(f"{tmp_path}/none.parquet")


def test_a_file_that_has_a_column_twice_is_unreadable() -> None:
    table = segment(OPERATIONS, [operation()])
    twice = table.append_column("kind", table["kind"])
    assert problem(written(twice)) == "unreadable: it has the column kind 2 times"
    # A column that is not recorded may be there twice.
    other = table.append_column("more", pa.array([1])).append_column("more", pa.array([1]))
    assert len(read(written(other))) == 1


def test_whatever_goes_wrong_with_a_file_is_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> pa.Table:
        raise KeyError("no\udcffcolumn\nat all")

    monkeypatch.setattr(pq, "ParquetFile", fail)
    assert problem(b"") == r"unreadable: 'no\udcffcolumn\nat all'"
