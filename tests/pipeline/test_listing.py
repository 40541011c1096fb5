"""The segments of a journal."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.listing import Segment, segments


def add(path: Path, content: bytes = b"") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_segments_are_listed_by_name_with_what_tells_that_they_changed(tmp_path: Path) -> None:
    add(tmp_path / "gaps" / "b.parquet", b"12345")
    add(tmp_path / "gaps" / "a.parquet")
    add(tmp_path / "checks" / "c.parquet")
    instant = 1_700_000_000_123_456_789
    os.utime(tmp_path / "gaps" / "b.parquet", ns=(instant, instant))
    empty, full = segments(str(tmp_path), "gaps")
    assert (empty.name, empty.size) == ("a.parquet", 0)
    modified = datetime(2023, 11, 14, 22, 13, 20, 123_456, UTC)
    assert full == Segment("b.parquet", f"{tmp_path}/gaps/b.parquet", 5, modified)


@pytest.mark.parametrize(
    "name", [".a.parquet", "_a.parquet", "a.parquet.part", ".a.parquet.unfinished", "a.txt"]
)
def test_files_that_are_not_closed_are_left_out(name: str, tmp_path: Path) -> None:
    add(tmp_path / "gaps" / name)
    assert segments(str(tmp_path), "gaps") == []


def test_a_directory_is_no_segment(tmp_path: Path) -> None:
    add(tmp_path / "gaps" / "a.parquet" / "part.parquet")
    assert segments(str(tmp_path), "gaps") == []


def test_a_pattern_finds_several_journals_and_of_copies_the_largest(tmp_path: Path) -> None:
    for journal, content in (("n1", b"12"), ("n2", b"123"), ("n3", b"1")):
        add(tmp_path / journal / "gaps" / "a.parquet", content)
    add(tmp_path / "n1" / "gaps" / "b.parquet")
    add(tmp_path / "n4")
    found = segments(f"{tmp_path}/n*", "gaps")
    assert [segment.path for segment in found] == [
        f"{tmp_path}/n2/gaps/a.parquet",
        f"{tmp_path}/n1/gaps/b.parquet",
    ]


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
