"""Produce and Fetch: requests and responses."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from kio.records.readers import read_batch
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import ForgottenTopic
from kio.schema.fetch.v12.response import EpochEndOffset
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ProtocolError
from examples.broker.metadata import LOG_APPEND_TIME, PartitionState
from examples.broker.protocol.apis import FETCH, PRODUCE
from examples.broker.replication import replica_manager
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.handlers.record_requests import EVENTS, at, fetch, partitions, produce, produced
from tests.examples.broker.leader_broker import CONFIG, Cluster, events, image_of
from tests.examples.broker.wire_batches import wire_batch

READ_COMMITTED = 1


async def test_produced_records_are_fetched_at_their_offsets(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    data = wire_batch(b"one", b"two")
    for offset in (0, 2):
        assert await produced(cluster, produce((0, data))) == [(0, ErrorCode.none, offset)]
    (partition,) = partitions(await Loopback(cluster.sessions).request(FETCH, fetch(at(1))))
    assert (partition.high_watermark, partition.last_stable_offset, partition.log_start_offset) == (4, 4, 0)
    assert [batch.base_offset for batch in WireRecordBatch.parse_all(partition.records or b"")] == [0, 2]
    assert (
        partition.records
        == WireRecordBatch.parse(data).at(0, 0).data + WireRecordBatch.parse(data).at(2, 0).data
    )


async def test_a_topic_can_have_the_time_of_the_append_for_all_records(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_manager, "wall_time_ms", lambda: 1_700_000_000_123)
    (topic_partition,) = cluster.create(0, replicas=1)
    config = replace(CONFIG, message_timestamp_type=LOG_APPEND_TIME)
    cluster.broker.apply(image_of(cluster.states, config), [topic_partition])
    data = wire_batch(b"one", b"two", producer=(7, 0, 0), timestamps=(1_000, 2_000))
    for acks in (1, -1):
        response = await Loopback(cluster.sessions).request(PRODUCE, produce((0, data), acks=acks))
        (answer,) = response.responses[0].partition_responses
        assert answer.base_offset == 0, "the second one is a retry"
        assert answer.log_append_time == datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
    (partition,) = partitions(await Loopback(cluster.sessions).request(FETCH, fetch(at(0))))
    (batch,) = WireRecordBatch.parse_all(partition.records or b"")
    assert (batch.max_timestamp, list(batch.timestamps())) == (
        1_700_000_000_123,
        [(0, 1_700_000_000_123), (1, 1_700_000_000_123)],
    )
    assert [record.value for record in read_batch(batch.data, 0)[0].records] == [b"one", b"two"]


async def test_a_producer_is_told_no_time_where_records_keep_their_own(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    request = produce((0, wire_batch(b"one")))
    (answer,) = (await Loopback(cluster.sessions).request(PRODUCE, request)).responses[0].partition_responses
    assert answer.log_append_time is None


async def test_each_partition_has_its_own_answer(cluster: Cluster) -> None:
    cluster.create(0, 1, replicas=1)
    good = wire_batch(b"one")
    assert await produced(cluster, produce((1, good), (0, good[:-1]), (5, good), (2, None))) == [
        (1, ErrorCode.none, 0),
        (0, ErrorCode.invalid_record, -1),
        (5, ErrorCode.unknown_topic_or_partition, -1),
        (2, ErrorCode.invalid_record, -1),
    ]
    one, five = partitions(await Loopback(cluster.sessions).request(FETCH, fetch(at(0, 1), at(0, 5))))
    assert (one.error_code, one.records) == (ErrorCode.none, good)
    assert (five.error_code, five.high_watermark) == (ErrorCode.unknown_topic_or_partition, -1)
    assert (one.aborted_transactions, five.aborted_transactions) == (None, ())


async def test_a_partition_named_twice_is_refused_and_nothing_is_appended(cluster: Cluster) -> None:
    cluster.create(0, 1, replicas=1)
    good = wire_batch(b"one")
    answers = await produced(cluster, produce((0, good), (1, good), (0, good), (0, good)))
    assert [error for _, error, _ in answers] == [
        ErrorCode.invalid_request,
        ErrorCode.none,
        ErrorCode.invalid_request,
        ErrorCode.invalid_request,
    ]
    assert cluster.partition(events(0)).log.log_end_offset == 0


async def test_clients_cannot_write_to_the_offsets_topic(cluster: Cluster) -> None:
    offsets = TopicPartition(OFFSETS_TOPIC, 0)
    cluster.broker.apply(image_of([PartitionState((0,), (0,), leader=0)], name=OFFSETS_TOPIC), [offsets])
    request = produce((0, wire_batch(b"hello")), topic=TopicName(OFFSETS_TOPIC))
    response = await Loopback(cluster.sessions).request(PRODUCE, request)
    (answer,) = response.responses[0].partition_responses
    assert (answer.error_code, answer.base_offset) == (ErrorCode.invalid_topic_exception, -1)
    assert cluster.partition(offsets).log.log_end_offset == 0


async def test_a_produce_without_acks_gets_no_answer_or_a_closed_connection(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    connection = Loopback(cluster.sessions)
    assert await connection.answer(PRODUCE, produce((0, wire_batch(b"one")), acks=0)) is None
    assert cluster.partition(events()).log.log_end_offset == 1
    with pytest.raises(ProtocolError, match="events-1 gave UNKNOWN_TOPIC_OR_PARTITION to test"):
        await connection.answer(PRODUCE, produce((1, wire_batch(b"one")), acks=0))


async def test_a_produce_waits_for_its_timeout(cluster: Cluster, virtual_time: VirtualTimeLoop) -> None:
    cluster.create(0)
    began = virtual_time.time()
    answers = await produced(cluster, produce((0, wire_batch(b"one")), acks=-1, timeout=1.5))
    assert answers == [(0, ErrorCode.request_timed_out, 0)]
    assert virtual_time.time() - began == pytest.approx(1.5, abs=0.002)


async def test_a_fetch_waits_for_its_max_wait(cluster: Cluster, virtual_time: VirtualTimeLoop) -> None:
    cluster.create(0, replicas=1)
    began = virtual_time.time()
    (partition,) = partitions(await Loopback(cluster.sessions).request(FETCH, fetch(at(0), max_wait=0.25)))
    assert partition.records == b""
    assert virtual_time.time() - began == pytest.approx(0.25, abs=0.002)


async def test_a_session_ends_when_its_last_partition_is_forgotten(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    broker = Loopback(cluster.sessions)
    opened = await broker.request(FETCH, fetch(at(0)))
    forgotten = (ForgottenTopic(topic=EVENTS, partitions=(i32(0),)),)
    last = replace(
        fetch(),
        session_id=opened.session_id,
        session_epoch=i32(1),
        topics=(),
        forgotten_topics_data=forgotten,
    )
    assert opened.session_id > 0
    assert (await broker.request(FETCH, last)).session_id == 0
    again = await broker.request(FETCH, replace(last, session_epoch=i32(2)))
    assert again.error_code is ErrorCode.fetch_session_id_not_found


async def test_a_fetch_does_not_wait_for_more_bytes_than_a_response_may_have(
    cluster: Cluster, virtual_time: VirtualTimeLoop
) -> None:
    cluster.create(0, replicas=1)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    began = virtual_time.time()
    await Loopback(cluster.sessions).request(
        FETCH, fetch(at(0), max_wait=10, min_bytes=1_000_000, max_bytes=50)
    )
    assert virtual_time.time() == began


async def test_read_committed_gets_an_empty_list_of_aborted_transactions(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    for level, expected in ((0, None), (READ_COMMITTED, ())):
        response = await Loopback(cluster.sessions).request(FETCH, fetch(at(0), isolation_level=level))
        assert partitions(response)[0].aborted_transactions == expected


async def test_a_reader_in_another_epoch_gets_an_error_and_a_diverging_one_the_epoch(
    cluster: Cluster,
) -> None:
    (topic_partition,) = cluster.create(0, replicas=1)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    for _ in range(2):
        cluster.lead_by(topic_partition, 0)
    await produced(cluster, produce((0, wire_batch(b"two"))))
    ask = Loopback(cluster.sessions).request
    for epoch, error in ((1, ErrorCode.fenced_leader_epoch), (3, ErrorCode.unknown_leader_epoch)):
        assert partitions(await ask(FETCH, fetch(at(0, epoch=epoch))))[0].error_code is error
    (diverging,) = partitions(await ask(FETCH, fetch(at(2, epoch=2, last_fetched_epoch=1))))
    assert diverging.error_code is ErrorCode.none
    assert diverging.diverging_epoch == EpochEndOffset(epoch=i32(0), end_offset=i64(1))
