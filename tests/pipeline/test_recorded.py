"""What a dataset has recorded tells which files need not be read, and which may be deleted."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from purgatory.pipeline.listing import Segment
from purgatory.pipeline.recorded import Recorded
from tests.pipeline.journals import NOON, Row


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"12345")
    os.utime(path, (NOON.timestamp(),) * 2)
    return Segment(str(path), 5, NOON)


def row(segment: Segment, **changed: object) -> Row:
    """The row about a segment that was read."""
    recorded: Row = {"source": segment.source, "name": segment.name, "size": segment.size}
    recorded |= {"modified": segment.modified, "rows": 3, "reason": None, "digest": segment.digest()}
    return recorded | changed


def without_digest(segment: Segment) -> Row:
    return row(segment, digest=None)


def unreadable(segment: Segment) -> Row:
    return row(segment, digest=None, reason="unreadable", rows=None)


def elsewhere(segment: Segment, content: bytes) -> Segment:
    """Another file of the same name, size and time."""
    path = Path(segment.path).with_name("elsewhere") / segment.name
    path.parent.mkdir()
    path.write_bytes(content)
    return replace(segment, path=str(path))


def test_a_file_was_read_if_its_path_size_and_time_are_those_that_were_read(segment: Segment) -> None:
    recorded = Recorded([row(segment)])
    assert recorded.was_read(segment)
    assert not recorded.was_read(replace(segment, size=6))
    assert not recorded.was_read(replace(segment, modified=NOON + timedelta(seconds=1)))
    assert not recorded.was_read(elsewhere(segment, b"67890"))


def test_the_last_row_about_a_path_counts(segment: Segment) -> None:
    recorded = Recorded([row(segment), row(segment, size=6)])
    assert not recorded.was_read(segment)
    recorded.add(row(segment))
    assert recorded.was_read(segment)


def test_a_file_that_could_not_be_read_has_its_reason_until_it_changes(segment: Segment) -> None:
    recorded = Recorded([unreadable(segment)])
    assert not recorded.was_read(segment)
    assert recorded.refusal(segment) == "unreadable"
    assert recorded.refusal(replace(segment, size=6)) is None
    assert Recorded([]).refusal(segment) is None


def test_of_a_file_without_a_digest_the_name_and_the_size_tell_whether_it_was_read(segment: Segment) -> None:
    recorded = Recorded([without_digest(segment)])
    assert recorded.was_read(replace(segment, path=f"/moved/{segment.name}", modified=NOON + timedelta(1)))
    assert not recorded.was_read(replace(segment, size=6))


def test_digests_are_given_for_the_sizes_of_segments(segment: Segment) -> None:
    recorded = Recorded([row(segment)])
    assert recorded.rows_by_digest([segment]) == {segment.digest(): 3}
    assert recorded.rows_by_digest([replace(segment, size=6)]) == {}
    assert repr(recorded) == "<Recorded: 1 paths, 1 digests>"


def test_only_a_file_whose_bytes_were_read_is_there(segment: Segment) -> None:
    recorded = Recorded([row(segment)])
    assert recorded.has(segment)
    assert not recorded.has(replace(segment, size=6))
    assert recorded.has(elsewhere(segment, b"12345"))
    assert not Recorded([unreadable(segment)]).has(segment)
    # Whoever wrote the file again may have kept its size and time.
    Path(segment.path).write_bytes(b"67890")
    assert not recorded.has(segment)
    Path(segment.path).unlink()
    assert not recorded.has(segment)


def test_of_a_file_without_a_digest_the_path_the_size_and_the_time_must_be_the_same(segment: Segment) -> None:
    recorded = Recorded([without_digest(segment)])
    assert recorded.has(segment)
    assert not recorded.has(replace(segment, modified=NOON + timedelta(seconds=1)))
    assert not recorded.has(elsewhere(segment, b"67890"))
    # The journal was reached by a link.
    link = Path(segment.path).with_name("link")
    link.symlink_to(Path(segment.path).parent)
    assert Recorded([without_digest(segment) | {"source": f"{link}/{segment.name}"}]).has(segment)
