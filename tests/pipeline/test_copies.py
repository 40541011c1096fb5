"""Copies among the segments of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from purgatory.pipeline.copies import copied, copies_in
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.intake import ReadSegment
from purgatory.pipeline.listing import segments

FIRST = ReadSegment("first", digest="d", kept=2, duplicates=1, refused={"wrong": 1})


def test_of_files_with_the_same_bytes_all_but_the_first_are_copies(tmp_path: Path) -> None:
    (tmp_path / "gaps").mkdir()
    for name, content in (
        ("a", b"12"),
        ("b", b"34"),
        ("c", b"12"),
        ("d", b"12"),
        ("e", b"123"),
        ("gone", b"12"),
    ):
        (tmp_path / "gaps" / f"{name}.parquet").write_bytes(content)
    found = segments(str(tmp_path), "gaps")
    (tmp_path / "gaps" / "gone.parquet").unlink()
    first = found[0]
    assert copies_in(found) == {each.path: (first.path, first.digest()) for each in found[2:4]}


def test_all_rows_of_a_copy_are_duplicates() -> None:
    assert copied("copy", FIRST, "d") == ReadSegment("copy", digest="d", copy=True, duplicates=4)


def test_a_copy_of_an_unreadable_file_is_unreadable() -> None:
    assert copied("copy", ReadSegment("first", problem="why"), "d") == ReadSegment("copy", problem="why")


def test_a_file_that_changed_after_it_was_compared_is_an_error() -> None:
    with pytest.raises(PipelineError, match="first: it changed while compact read it"):
        copied("copy", FIRST, "another")
