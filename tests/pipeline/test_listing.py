"""The segments of a journal."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.listing import Segment, digest_of, segments


def add(path: Path, content: bytes = b"") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_segments_are_listed_by_path_with_what_tells_that_they_changed(tmp_path: Path) -> None:
    add(tmp_path / "gaps" / "b.parquet", b"12345")
    add(tmp_path / "gaps" / "a.parquet")
    add(tmp_path / "checks" / "c.parquet")
    instant = 1_700_000_000_123_456_789
    os.utime(tmp_path / "gaps" / "b.parquet", ns=(instant, instant))
    empty, full = segments(str(tmp_path), "gaps")
    assert (empty.name, empty.size) == ("a.parquet", 0)
    modified = datetime(2023, 11, 14, 22, 13, 20, 123_456, UTC)
    assert full == Segment(f"{tmp_path}/gaps/b.parquet", 5, modified)


@pytest.mark.parametrize(
    "name", [".a.parquet", "_a.parquet", "a.parquet.part", ".a.parquet.unfinished", "a.txt"]
)
def test_files_that_are_not_closed_are_left_out(name: str, tmp_path: Path) -> None:
    add(tmp_path / "gaps" / name)
    assert segments(str(tmp_path), "gaps") == []


def test_a_directory_is_no_segment(tmp_path: Path) -> None:
    add(tmp_path / "gaps" / "a.parquet" / "part.parquet")
    assert segments(str(tmp_path), "gaps") == []


def test_a_pattern_finds_several_journals_and_all_files_of_one_name(tmp_path: Path) -> None:
    for journal, content in (("n1", b"12"), ("n2", b"123"), ("n3", b"12")):
        add(tmp_path / journal / "gaps" / "a.parquet", content)
    add(tmp_path / "n1" / "gaps" / "b.parquet")
    add(tmp_path / "n4")
    found = segments(f"{tmp_path}/n*", "gaps")
    assert [segment.path.removeprefix(str(tmp_path)) for segment in found] == [
        "/n1/gaps/a.parquet",
        "/n1/gaps/b.parquet",
        "/n2/gaps/a.parquet",
        "/n3/gaps/a.parquet",
    ]
    # Files with the same bytes have one digest.
    first, second, other, copy = (segment.digest() for segment in found)
    assert first == copy
    assert len({first, second, other}) == 3
    assert digest_of(pa.py_buffer(b"12")) == first


def test_each_file_is_listed_once_whatever_links_lead_to_it(tmp_path: Path) -> None:
    add(tmp_path / "node" / "gaps" / "b.parquet")
    (tmp_path / "latest").symlink_to("node")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "gaps").symlink_to(tmp_path / "node" / "gaps")
    (tmp_path / "node" / "gaps" / "a.parquet").symlink_to("b.parquet")
    for journal in ("*", "latest", "other"):
        found = segments(f"{tmp_path}/{journal}", "gaps")
        assert [segment.path for segment in found] == [f"{tmp_path}/node/gaps/b.parquet"]


def test_a_name_that_is_not_utf8_is_escaped_as_text(tmp_path: Path) -> None:
    add(tmp_path / "gaps" / "caf\udce9.parquet")
    (segment,) = segments(str(tmp_path), "gaps")
    assert segment.path == f"{tmp_path}/gaps/caf\udce9.parquet"
    assert (segment.name, segment.source) == (r"caf\xe9.parquet", rf"{tmp_path}/gaps/caf\xe9.parquet")


def test_a_file_that_the_system_cannot_look_at_is_listed_so_that_reading_it_says_why(tmp_path: Path) -> None:
    add(tmp_path / "gaps" / "a.parquet")
    loop = tmp_path / "gaps" / "loop.parquet"
    loop.symlink_to(loop)
    assert [segment.name for segment in segments(str(tmp_path), "gaps")] == ["a.parquet", "loop.parquet"]


def test_a_directory_whose_name_looks_like_a_pattern_is_that_directory(tmp_path: Path) -> None:
    add(tmp_path / "n[1]" / "gaps" / "a.parquet")
    add(tmp_path / "n1" / "gaps" / "b.parquet")
    assert [segment.name for segment in segments(f"{tmp_path}/n[1]", "gaps")] == ["a.parquet"]


def test_a_path_without_the_table_is_not_a_journal(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", tmp_path / "*"):
        with pytest.raises(PipelineError, match=r"not a journal, it has no directory 'gaps'"):
            segments(str(path), "gaps")


def test_a_segment_that_is_moved_while_it_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path / "gaps" / "a.parquet")
    (tmp_path / "gaps" / "b.parquet").symlink_to(tmp_path / "none")
    assert [segment.name for segment in segments(str(tmp_path), "gaps")] == ["a.parquet"]
