"""InitProducerId, Produce and DeleteRecords: requests and responses."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from kio.records.readers import read_batch
from kio.schema.errors import ErrorCode

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ProtocolError
from examples.broker.metadata import LOG_APPEND_TIME, PartitionState
from examples.broker.protocol import apis
from examples.broker.protocol.apis import FETCH, PRODUCE
from examples.broker.replication import replica_manager
from examples.broker.replication.requests import LEADER_ACK, ProduceParams
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import ControlledCluster
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.handlers.plain_requests import ask
from tests.examples.broker.handlers.record_requests import at, fetch, partitions, produce, produced
from tests.examples.broker.leader_broker import CONFIG, Cluster, events, image_of
from tests.examples.broker.protocol.plain_messages import Plain
from tests.examples.broker.wire_batches import wire_batch

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)


async def delete(
    cluster: Cluster, offsets: dict[int, int], timeout: float = 30, *, topic: str = "events"
) -> list[tuple[int, int, str]]:
    asked = [{"partition_index": index, "offset": offset} for index, offset in offsets.items()]
    answer = await ask(
        cluster.broker,
        apis.DELETE_RECORDS,
        timeout=timeout * 1000,
        topics=[{"name": topic, "partitions": asked}],
    )
    assert [entry["name"] for entry in answer["topics"]] == [topic]
    return [
        (entry["partition_index"], entry["low_watermark"], entry["error_code"])
        for entry in answer["topics"][0]["partitions"]
    ]


async def test_each_producer_gets_an_id_of_its_own_in_epoch_0(brokers: ControlledCluster) -> None:
    known = {"producer_id": 0, "producer_epoch": 0}
    answers = [await ask(brokers.admins[0], apis.INIT_PRODUCER_ID, **asked) for asked in ({}, {}, known)]
    assert [(answer["error_code"], answer["producer_epoch"]) for answer in answers] == [("none", 0)] * 3
    assert len({answer["producer_id"] for answer in answers}) == 3


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"producer_id": 4, "producer_epoch": -1}, "invalid_request"),
        ({"producer_id": -1, "producer_epoch": 1}, "invalid_request"),
        ({"transactional_id": ""}, "transactional_id_authorization_failed"),
        ({"transactional_id": "mine", "producer_id": 4}, "transactional_id_authorization_failed"),
    ],
)
async def test_an_incomplete_producer_id_is_refused_and_a_transaction_with_a_line_in_the_log(
    brokers: ControlledCluster, caplog: pytest.LogCaptureFixture, asked: dict[str, Plain], error: str
) -> None:
    answer = await ask(brokers.admins[0], apis.INIT_PRODUCER_ID, **asked)
    assert answer["error_code"] == error
    assert (answer["producer_id"], answer["producer_epoch"]) == (-1, -1)
    line = f"serves no transactions: produce without transactional.id {asked.get('transactional_id')!r}"
    assert (line in caplog.text) == ("transactional_id" in asked)


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
    assert batch.max_timestamp == 1_700_000_000_123
    assert list(batch.timestamps()) == [(0, 1_700_000_000_123), (1, 1_700_000_000_123)]
    assert [record.value for record in read_batch(batch.data, 0)[0].records] == [b"one", b"two"]


async def test_a_producer_is_told_no_time_where_records_keep_their_own(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    request = produce((0, wire_batch(b"one")))
    (answer,) = (await Loopback(cluster.sessions).request(PRODUCE, request)).responses[0].partition_responses
    assert answer.log_append_time is None


async def test_each_partition_has_its_own_answer(cluster: Cluster) -> None:
    cluster.create(0, 1, 2, 3, replicas=1)
    good = wire_batch(b"one")
    batches = [(1, good), (0, good[:-1]), (5, good), (2, None), (3, good), (3, good), (3, good)]
    assert await produced(cluster, produce(*batches)) == [
        (1, ErrorCode.none, 0),
        (0, ErrorCode.invalid_record, -1),
        (5, ErrorCode.unknown_topic_or_partition, -1),
        (2, ErrorCode.invalid_record, -1),
        *[(3, ErrorCode.invalid_request, -1)] * 3,
    ]
    assert cluster.partition(events(3)).log.log_end_offset == 0, "a partition named twice gets nothing"


async def test_clients_neither_write_to_the_offsets_topic_nor_delete_from_it(cluster: Cluster) -> None:
    cluster.broker.apply(image_of([PartitionState((0,), (0,), leader=0)], name=OFFSETS_TOPIC), [OFFSETS])
    commit = WireRecordBatch.parse(wire_batch(b"a commit"))
    await cluster.broker.append(ProduceParams(LEADER_ACK), {OFFSETS: commit})
    request = produce((0, wire_batch(b"hello")), topic=OFFSETS_TOPIC)
    assert await produced(cluster, request) == [(0, ErrorCode.invalid_topic_exception, -1)]
    assert await delete(cluster, {0: -1}, topic=OFFSETS_TOPIC) == [(0, -1, "invalid_topic_exception")]
    log = cluster.partition(OFFSETS).log
    assert (log.log_start_offset, log.log_end_offset) == (0, 1)


async def test_a_produce_without_acks_gets_no_answer_or_a_closed_connection(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    connection = Loopback(cluster.sessions)
    assert await connection.answer(PRODUCE, produce((0, wire_batch(b"one")), acks=0)) is None
    assert cluster.partition(events()).log.log_end_offset == 1
    with pytest.raises(ProtocolError, match="events-1 gave UNKNOWN_TOPIC_OR_PARTITION to test"):
        await connection.answer(PRODUCE, produce((1, wire_batch(b"one")), acks=0))


async def test_deleted_records_are_gone_and_each_partition_has_its_low_watermark(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    await produced(cluster, produce((0, wire_batch(b"one", b"two", b"three"))))
    assert await delete(cluster, {0: 2, 5: 0}) == [(0, 2, "none"), (5, -1, "unknown_topic_or_partition")]
    assert await delete(cluster, {0: 1}) == [(0, 2, "none")]
    assert await delete(cluster, {0: -1}) == [(0, 3, "none")]
    assert await delete(cluster, {0: 4}) == [(0, -1, "offset_out_of_range")]


async def test_a_write_waits_for_its_timeout(cluster: Cluster, virtual_time: VirtualTimeLoop) -> None:
    cluster.create(0)
    began = virtual_time.time()
    answers = await produced(cluster, produce((0, wire_batch(b"one")), acks=-1, timeout=1.5))
    assert answers == [(0, ErrorCode.request_timed_out, 0)]
    assert virtual_time.time() - began == pytest.approx(1.5, abs=0.002)
    assert await delete(cluster, {0: 0}, 2.5) == [(0, -1, "request_timed_out")]
    assert virtual_time.time() - began == pytest.approx(4, abs=0.004)
