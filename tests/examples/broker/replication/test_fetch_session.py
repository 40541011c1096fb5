"""Fetch sessions: only unchanged partitions are left out, and only changed ones are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState, TopicConfig
from examples.broker.replication.fetch_sessions import FetchSession
from examples.broker.replication.follower_request import (
    NO_SESSION,
    FetchSessionHandler,
    FollowerRequest,
    epoch_after,
)
from examples.broker.replication.partition import Partition
from examples.broker.replication.requests import CONSUMER, PartitionFetch, PartitionFetched
from examples.broker.storage.leader_epochs import EpochEndOffset
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.replica import Replica
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.leader_broker import TOPIC_ID

ONE, OTHER = TopicPartition("events", 0), TopicPartition("events", 1)
RECORDS = (RecordBatch(1, b"x"),)
FOLLOWER = 1


def session_of(*topic_partitions: TopicPartition, reader: int = FOLLOWER) -> FetchSession:
    return FetchSession(7, reader, dict.fromkeys(topic_partitions, PartitionFetch(0)), now=0)


def quiet(mark: int = 5, start: int = 0) -> PartitionFetched:
    return PartitionFetched(ErrorCode.none, mark, start)


def partition(*, in_sync: tuple[int, ...] = (0, FOLLOWER)) -> Partition:
    """Return the partition ``ONE``, led by broker 0, with an empty log."""
    led = Partition(ONE, 0, Replica(TOPIC_ID, 100), TopicConfig(), replica_lag_time_max=10)
    led.make_leader(PartitionState((0, FOLLOWER), in_sync, leader=0), now=0)
    return led


def test_the_first_response_has_every_partition() -> None:
    session = session_of(ONE, OTHER)
    assert session.incremental_response({ONE: quiet(), OTHER: quiet()}).keys() == {ONE, OTHER}


@pytest.mark.parametrize(
    "news",
    [
        PartitionFetched(ErrorCode.none, 5, 0, RECORDS),
        quiet(mark=6),
        quiet(start=1),
        PartitionFetched(ErrorCode.not_leader_or_follower),
        PartitionFetched(ErrorCode.none, 5, 0, diverging_epoch=EpochEndOffset(1, 3)),
    ],
    ids=["records", "high watermark", "log start", "error", "divergence"],
)
def test_later_responses_have_only_changed_partitions(news: PartitionFetched) -> None:
    session = session_of(ONE, OTHER)
    session.incremental_response({ONE: quiet(), OTHER: quiet()})
    assert session.incremental_response({ONE: quiet(), OTHER: quiet()}) == {}
    assert session.incremental_response({ONE: quiet(), OTHER: news}) == {OTHER: news}


def test_a_partition_that_had_records_is_read_after_the_others() -> None:
    session = session_of(ONE, OTHER)
    records = PartitionFetched(ErrorCode.none, 5, 0, RECORDS)
    for had_records, quiet_one in ((ONE, OTHER), (OTHER, ONE), (ONE, OTHER)):
        session.incremental_response({had_records: records, quiet_one: quiet()})
        assert list(session.unread) == [quiet_one, had_records]
        session.update(epoch_after(session.epoch), {had_records: PartitionFetch(1)}, [])
        assert list(session.unread) == [quiet_one, had_records]


def test_an_error_is_repeated_and_its_end_is_sent() -> None:
    session = session_of(ONE)
    session.incremental_response({ONE: quiet()})
    fenced = PartitionFetched(ErrorCode.fenced_leader_epoch)
    assert (
        session.incremental_response({ONE: fenced})
        == session.incremental_response({ONE: fenced})
        == {ONE: fenced}
    )
    assert session.incremental_response({ONE: quiet()}) == {ONE: quiet()}


def test_a_request_updates_and_forgets_partitions() -> None:
    session = session_of(ONE, OTHER)
    session.update(1, {ONE: PartitionFetch(7)}, [])
    assert session.partitions == session.unread == {ONE: PartitionFetch(7), OTHER: PartitionFetch(0)}
    session.update(2, {}, [OTHER])
    assert session.partitions == session.unread == {ONE: PartitionFetch(7)}


def test_a_partition_that_is_forgotten_and_added_again_is_sent_again() -> None:
    session = session_of(ONE)
    session.incremental_response({ONE: quiet()})
    session.update(1, {}, [ONE])
    session.update(2, {ONE: PartitionFetch(0)}, [])
    assert session.incremental_response({ONE: quiet()}) == {ONE: quiet()}


@pytest.mark.parametrize("reader", [FOLLOWER, CONSUMER])
def test_a_partition_without_news_is_set_aside_until_it_changes(reader: int) -> None:
    session, led = session_of(ONE, OTHER, reader=reader), partition()
    session.set_aside(led)
    assert ONE in session.unread, "its reader does not have the watermarks yet"
    session.incremental_response({ONE: quiet(mark=0)})
    session.set_aside(led)
    assert list(session.unread) == [OTHER]
    session.partition_changing(led)
    assert list(session.unread) == [OTHER, ONE]


def test_a_partition_is_read_again_once_its_reader_asks_for_something_else() -> None:
    session, led = session_of(ONE), partition()
    session.incremental_response({ONE: quiet(mark=0)})
    session.set_aside(led)
    session.update(1, {ONE: PartitionFetch(0, log_start_offset=0)}, [])
    assert session.unread == {ONE: PartitionFetch(0, log_start_offset=0)}


@pytest.mark.parametrize("sent", [quiet(mark=1), quiet(mark=0, start=1)], ids=["high watermark", "log start"])
def test_a_partition_that_changed_after_the_read_is_not_set_aside(sent: PartitionFetched) -> None:
    session = session_of(ONE)
    session.incremental_response({ONE: sent})
    session.set_aside(partition())
    assert session.unread


def test_a_partition_with_records_to_read_is_not_set_aside() -> None:
    session, led = session_of(ONE), partition()
    session.incremental_response({ONE: quiet(mark=0)})
    led.append_as_leader(RecordBatch(1, b"x"), now=0, acks_all=False)
    session.set_aside(led)
    assert session.unread


def test_a_partition_whose_follower_may_join_the_in_sync_replicas_is_not_set_aside() -> None:
    session = session_of(ONE)
    session.incremental_response({ONE: quiet(mark=0)})
    session.set_aside(partition(in_sync=(0,)))
    assert session.unread


def test_the_fetches_of_a_session_count_for_the_partitions_that_they_do_not_read() -> None:
    session, led = session_of(ONE), partition()
    led.update_follower_fetch_state(FOLLOWER, led.log.log_end_offset, now=0)
    session.incremental_response({ONE: quiet(mark=0)})
    session.set_aside(led)
    session.last_used = 100
    session.partition_changing(led)
    led.append_as_leader(RecordBatch(1, b"x"), now=105, acks_all=False)
    led.maybe_shrink_isr(110)
    assert list(led.in_sync_replicas) == [0, FOLLOWER]
    led.maybe_shrink_isr(110.1)
    assert list(led.in_sync_replicas) == [0]


@pytest.mark.parametrize("epoch", [0, 2, -1, 7])
def test_a_request_with_a_wrong_epoch_is_refused_and_changes_nothing(epoch: int) -> None:
    session = session_of(ONE)
    with pytest.raises(ApiError) as refused:
        session.update(epoch, {OTHER: PartitionFetch(0)}, [ONE])
    assert refused.value.code is ErrorCode.invalid_fetch_session_epoch
    assert session.partitions == session.unread == {ONE: PartitionFetch(0)}
    session.update(1, {}, [])


def test_session_epochs_start_over_at_1() -> None:
    assert epoch_after(0) == 1
    assert epoch_after(2**31 - 1) == 1


wanted = st.dictionaries(
    st.sampled_from([TopicPartition("t", index) for index in range(4)]),
    st.builds(PartitionFetch, st.integers(0, 3)),
)


@given(st.lists(st.tuples(wanted, st.booleans()), min_size=1))
def test_the_leader_always_fetches_what_the_follower_wants(
    requests: list[tuple[dict[TopicPartition, PartitionFetch], bool]],
) -> None:
    """For any sequence of wanted partitions, with sessions that the leader may decline."""
    followed, request = FetchSessionHandler(), FollowerRequest()
    session = session_of()
    for wanted_now, declined in requests:
        for topic_partition in set(request) - set(wanted_now):
            request.leave_out(topic_partition)
        for topic_partition, fetch in wanted_now.items():
            request.want(topic_partition, fetch)
        epoch = followed.epoch
        changed, forgotten = followed.next_request(request)
        if epoch == 0:
            session = FetchSession(7, FOLLOWER, changed, now=0)
        else:
            session.update(epoch, changed, forgotten)
        assert session.partitions == request == wanted_now
        followed.handle_response(NO_SESSION if declined else session.session_id)
