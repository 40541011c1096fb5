"""Fetch sessions: only unchanged partitions are left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.fetch import PartitionFetch, PartitionFetched
from examples.broker.replication.fetch_session import (
    MAX_SESSIONS,
    NO_SESSION,
    FetchSession,
    FetchSessionHandler,
    FetchSessions,
    epoch_after,
)
from examples.broker.storage.leader_epochs import EpochEndOffset
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.segment import UNKNOWN_OFFSET_METADATA, FetchDataInfo
from examples.broker.topic_partition import TopicPartition

ONE, OTHER = TopicPartition("events", 0), TopicPartition("events", 1)
RECORDS = FetchDataInfo(UNKNOWN_OFFSET_METADATA, (RecordBatch(1, b"x"),), 1)


def quiet(mark: int = 5, start: int = 0) -> PartitionFetched:
    return PartitionFetched(ErrorCode.NONE, mark, start)


def test_the_first_response_has_every_partition() -> None:
    session = FetchSession(1, {ONE: PartitionFetch(0), OTHER: PartitionFetch(0)})
    assert session.incremental_response({ONE: quiet(), OTHER: quiet()}).keys() == {ONE, OTHER}


@pytest.mark.parametrize(
    "news",
    [
        PartitionFetched(ErrorCode.NONE, 5, 0, RECORDS),
        quiet(mark=6),
        quiet(start=1),
        PartitionFetched(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        PartitionFetched(ErrorCode.NONE, 5, 0, diverging_epoch=EpochEndOffset(1, 3)),
    ],
    ids=["records", "high watermark", "log start", "error", "divergence"],
)
def test_later_responses_have_only_changed_partitions(news: PartitionFetched) -> None:
    session = FetchSession(1, {ONE: PartitionFetch(0), OTHER: PartitionFetch(0)})
    session.incremental_response({ONE: quiet(), OTHER: quiet()})
    assert session.incremental_response({ONE: quiet(), OTHER: quiet()}) == {}
    assert session.incremental_response({ONE: quiet(), OTHER: news}) == {OTHER: news}


def test_a_partition_that_had_records_is_read_after_the_others() -> None:
    session = FetchSession(1, {ONE: PartitionFetch(0), OTHER: PartitionFetch(0)})
    records = PartitionFetched(ErrorCode.NONE, 5, 0, RECORDS)
    for had_records, quiet_one in ((ONE, OTHER), (OTHER, ONE), (ONE, OTHER)):
        session.incremental_response({had_records: records, quiet_one: quiet()})
        assert list(session.partitions) == [quiet_one, had_records]
        session.update(epoch_after(session.epoch), {had_records: PartitionFetch(1)}, [])
        assert list(session.partitions) == [quiet_one, had_records]


def test_records_of_a_forgotten_partition_do_not_restore_it() -> None:
    session = FetchSession(1, {ONE: PartitionFetch(0)})
    session.update(1, {}, [ONE])
    session.incremental_response({ONE: PartitionFetched(ErrorCode.NONE, 5, 0, RECORDS)})
    assert session.partitions == {}


def test_an_error_is_repeated_and_its_end_is_sent() -> None:
    session = FetchSession(1, {ONE: PartitionFetch(0)})
    session.incremental_response({ONE: quiet()})
    fenced = PartitionFetched(ErrorCode.FENCED_LEADER_EPOCH)
    assert (
        session.incremental_response({ONE: fenced})
        == session.incremental_response({ONE: fenced})
        == {ONE: fenced}
    )
    assert session.incremental_response({ONE: quiet()}) == {ONE: quiet()}


def test_a_request_updates_and_forgets_partitions() -> None:
    session = FetchSession(1, {ONE: PartitionFetch(0), OTHER: PartitionFetch(0)})
    session.update(1, {ONE: PartitionFetch(7)}, [])
    assert session.partitions == {ONE: PartitionFetch(7), OTHER: PartitionFetch(0)}
    session.update(2, {}, [OTHER])
    assert session.partitions == {ONE: PartitionFetch(7)}


def test_a_partition_that_is_forgotten_and_added_again_is_sent_again() -> None:
    session = FetchSession(1, {ONE: PartitionFetch(0)})
    session.incremental_response({ONE: quiet()})
    session.update(1, {}, [ONE])
    session.update(2, {ONE: PartitionFetch(0)}, [])
    assert session.incremental_response({ONE: quiet()}) == {ONE: quiet()}


@pytest.mark.parametrize("epoch", [0, 2, -1, 7])
def test_a_request_with_a_wrong_epoch_is_refused_and_changes_nothing(epoch: int) -> None:
    session = FetchSession(1, {ONE: PartitionFetch(0)})
    with pytest.raises(ApiError) as refused:
        session.update(epoch, {OTHER: PartitionFetch(0)}, [ONE])
    assert refused.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert session.partitions == {ONE: PartitionFetch(0)}
    session.update(1, {}, [])


def test_session_epochs_start_over_at_1() -> None:
    assert epoch_after(0) == 1
    assert epoch_after(2**31 - 1) == 1


def test_a_follower_has_one_session_the_latest() -> None:
    sessions = FetchSessions()
    earlier, later = (sessions.open(2, {ONE: PartitionFetch(0)}) for _ in range(2))
    assert earlier.session_id != later.session_id
    assert sessions.resume(2, later.session_id) is later
    for replica_id, session_id in ((2, earlier.session_id), (3, later.session_id)):
        with pytest.raises(ApiError) as refused:
            sessions.resume(replica_id, session_id)
        assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_number_of_sessions_is_bounded() -> None:
    sessions = FetchSessions()
    first, *_, last = [sessions.open(replica_id, {}) for replica_id in range(MAX_SESSIONS + 1)]
    with pytest.raises(ApiError):
        sessions.resume(0, first.session_id)
    assert sessions.resume(MAX_SESSIONS, last.session_id) is last


wanted = st.dictionaries(
    st.sampled_from([TopicPartition("t", index) for index in range(4)]),
    st.builds(PartitionFetch, st.integers(0, 3)),
)


@given(st.lists(st.tuples(wanted, st.booleans()), min_size=1))
def test_the_leader_always_fetches_what_the_follower_wants(
    requests: list[tuple[dict[TopicPartition, PartitionFetch], bool]],
) -> None:
    """For any sequence of wanted partitions, with sessions that the leader may decline."""
    sessions, followed = FetchSessions(), FetchSessionHandler()
    session: FetchSession | None = None
    for request, declined in requests:
        epoch = followed.epoch
        changed, forgotten = followed.next_request(request)
        if epoch == 0:
            session = sessions.open(1, changed)
        else:
            session = sessions.resume(1, followed.session_id)
            session.update(epoch, changed, forgotten)
        assert session.partitions == request
        followed.handle_response(NO_SESSION if declined else session.session_id)
