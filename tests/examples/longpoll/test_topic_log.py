"""A topic's log keeps the latest records within its limits, and reads as a list of all records does."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from examples.longpoll.limits import Limits
from examples.longpoll.topic_log import TopicLog
from purgatory.web import Position

LIMITS = Limits(log_records=5, log_bytes=40, answer_records=3)


@example([20, 20], 0)
@given(st.lists(st.integers(1, 40)), st.integers(0, 60))
def test_a_log_reads_as_the_list_of_all_records_does(sizes: list[int], offset: int) -> None:
    log = TopicLog("t", "id", LIMITS)
    records = [b'"%s"' % (b"x" * (size - 2)) if size > 2 else b"1" * size for size in sizes]
    assert [log.append(record) for record in records] == list(range(len(records)))
    assert log.end == len(records)
    kept = records[log.start :]
    assert len(kept) <= 5
    assert sum(map(len, kept)) <= 40
    # No record is dropped too early: one more would exceed a limit.
    if log.start:
        assert len(kept) == 5 or sum(map(len, records[log.start - 1 :])) > 40
    if log.start <= offset <= log.end:
        page = log.read(offset)
        assert list(page.records) == records[offset : offset + 3]
        answer = json.loads(page.json())
        assert answer["records"] == [json.loads(record) for record in page.records]
        assert (answer["offset"], answer["next"]) == (offset, offset + len(page.records))
    else:
        with pytest.raises(LookupError):
            log.read(offset)


def test_a_log_has_the_places_from_its_oldest_record_to_its_end() -> None:
    log = TopicLog("t", "id", LIMITS, start=7)
    log.append(b"1")
    assert [log.has(Position("id", offset)) for offset in (6, 7, 8, 9)] == [False, True, True, False]
    assert not log.has(Position("another", 7))


def test_the_entity_tag_changes_with_the_records_and_with_nothing_else() -> None:
    log = TopicLog("t", "id", LIMITS)
    log.append(b"1")
    tag = log.read(0).etag
    assert log.read(0).etag == tag
    assert log.read(1).etag != tag
    log.append(b"2")
    assert log.read(0).etag != tag
    assert TopicLog("t", "another", LIMITS).read(0).etag != TopicLog("t", "id", LIMITS).read(0).etag


def test_the_repr_of_a_log_shows_its_name_and_offsets() -> None:
    assert repr(TopicLog("t", "id", LIMITS)) == "<TopicLog 't' start=0 end=0>"
