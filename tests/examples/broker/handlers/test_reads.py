"""Fetch, ListOffsets and OffsetForLeaderEpoch: requests and responses."""

from dataclasses import replace
from typing import Final

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import ForgottenTopic
from kio.schema.fetch.v12.response import EpochEndOffset
from kio.static.primitive import i32, i64

from examples.broker.protocol import apis
from examples.broker.protocol.apis import FETCH, LIST_OFFSETS
from examples.broker.replication.requests import LEADER_ACK, ProduceParams
from examples.broker.storage.wire_batch import WireRecordBatch
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.handlers.plain_requests import ask
from tests.examples.broker.handlers.record_requests import EVENTS, at, fetch, partitions, produce, produced
from tests.examples.broker.leader_broker import Cluster, events
from tests.examples.broker.wire_batches import wire_batch

READ_COMMITTED: Final = 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


async def append(cluster: Cluster, *timestamps: int) -> None:
    batch = WireRecordBatch.parse(wire_batch(*(b"x" for _ in timestamps), timestamps=timestamps))
    await cluster.broker.append(ProduceParams(LEADER_ACK), {events(): batch})


async def offset(
    cluster: Cluster,
    timestamp: int,
    *,
    index: int = 0,
    epoch: int = -1,
    replica_id: int = -1,
    version: int | None = None,
) -> tuple[str, int, int, int]:
    asked = {"partition_index": index, "current_leader_epoch": epoch, "timestamp": timestamp}
    answer = await ask(
        cluster.broker,
        apis.LIST_OFFSETS,
        version=version,
        replica_id=replica_id,
        topics=[{"name": "events", "partitions": [asked]}],
    )
    ((found,),) = [topic["partitions"] for topic in answer["topics"] if topic["name"] == "events"]
    assert found["partition_index"] == index
    return found["error_code"], found["offset"], found["timestamp"], found["leader_epoch"]


async def epoch_end(cluster: Cluster, leader_epoch: int, *, current: int = -1) -> tuple[str, int, int]:
    asked = {"partition": 0, "current_leader_epoch": current, "leader_epoch": leader_epoch}
    answer = await ask(
        cluster.broker, apis.OFFSET_FOR_LEADER_EPOCH, topics=[{"topic": "events", "partitions": [asked]}]
    )
    ((found,),) = [topic["partitions"] for topic in answer["topics"] if topic["topic"] == "events"]
    return found["error_code"], found["leader_epoch"], found["end_offset"]


async def test_produced_records_are_fetched_at_their_offsets(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    data = wire_batch(b"one", b"two")
    for base in (0, 2):
        assert await produced(cluster, produce((0, data))) == [(0, ErrorCode.none, base)]
    found, missing = partitions(await Loopback(cluster.sessions).request(FETCH, fetch(at(1), at(0, 5))))
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (4, 4, 0)
    batch = WireRecordBatch.parse(data)
    assert found.records == batch.at(0, 0).data + batch.at(2, 0).data
    assert (missing.error_code, missing.high_watermark) == (ErrorCode.unknown_topic_or_partition, -1)
    assert (found.aborted_transactions, missing.aborted_transactions) == (None, ())


async def test_a_fetch_waits_for_its_max_wait(cluster: Cluster, virtual_time: VirtualTimeLoop) -> None:
    cluster.create(0, replicas=1)
    began = virtual_time.time()
    (partition,) = partitions(await Loopback(cluster.sessions).request(FETCH, fetch(at(0), max_wait=0.25)))
    assert partition.records == b""
    assert virtual_time.time() - began == pytest.approx(0.25, abs=0.002)


async def test_a_fetch_does_not_wait_for_more_bytes_than_a_response_may_have(
    cluster: Cluster, virtual_time: VirtualTimeLoop
) -> None:
    cluster.create(0, replicas=1)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    began = virtual_time.time()
    request = fetch(at(0), max_wait=10, min_bytes=1_000_000, max_bytes=50)
    await Loopback(cluster.sessions).request(FETCH, request)
    assert virtual_time.time() == began


async def test_a_session_ends_when_its_last_partition_is_forgotten(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    broker = Loopback(cluster.sessions)
    opened = await broker.request(FETCH, fetch(at(0)))
    last = replace(
        fetch(),
        session_id=opened.session_id,
        session_epoch=i32(1),
        topics=(),
        forgotten_topics_data=(ForgottenTopic(topic=EVENTS, partitions=(i32(0),)),),
    )
    assert opened.session_id > 0
    assert (await broker.request(FETCH, last)).session_id == 0
    again = await broker.request(FETCH, replace(last, session_epoch=i32(2)))
    assert again.error_code is ErrorCode.fetch_session_id_not_found


async def test_read_committed_gets_an_empty_list_of_aborted_transactions(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    request = fetch(at(0), isolation_level=READ_COMMITTED)
    assert partitions(await Loopback(cluster.sessions).request(FETCH, request))[0].aborted_transactions == ()


async def test_a_reader_in_another_epoch_gets_an_error_and_a_diverging_one_the_epoch(
    cluster: Cluster,
) -> None:
    (topic_partition,) = cluster.create(0, replicas=1)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    for _ in range(2):
        cluster.lead_by(topic_partition, 0)
    await produced(cluster, produce((0, wire_batch(b"two"))))
    send = Loopback(cluster.sessions).request
    for epoch, error in ((1, ErrorCode.fenced_leader_epoch), (3, ErrorCode.unknown_leader_epoch)):
        assert partitions(await send(FETCH, fetch(at(0, epoch=epoch))))[0].error_code is error
    (diverging,) = partitions(await send(FETCH, fetch(at(2, epoch=2, last_fetched_epoch=1))))
    assert diverging.error_code is ErrorCode.none
    assert diverging.diverging_epoch == EpochEndOffset(epoch=i32(0), end_offset=i64(1))


async def test_offsets_are_found_by_time_and_at_both_ends(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0, replicas=1)
    await append(cluster, 1_000, 3_000, 2_000)
    cluster.lead_by(topic_partition, 0)
    await append(cluster, 2_500, 4_000)
    for timestamp, found in {
        0: (0, 1_000, 0),
        1_001: (1, 3_000, 0),
        3_001: (4, 4_000, 1),
        4_001: (-1, -1, -1),
        LATEST: (5, -1, 1),
        MAX_TIMESTAMP: (4, 4_000, 1),
        EARLIEST: (0, -1, 0),
        EARLIEST_LOCAL: (0, -1, 0),
        LATEST_TIERED: (-1, -1, -1),
    }.items():
        assert await offset(cluster, timestamp) == ("none", *found)
    cluster.partition(events()).log.increment_log_start_offset(1)
    assert await offset(cluster, 0) == ("none", 1, 3_000, 0), "a deleted record is not found"
    assert await offset(cluster, EARLIEST) == ("none", 1, -1, 0)


@pytest.mark.parametrize(("timestamp", "known_from"), [(-3, 7), (-4, 8), (-5, 9), (-6, 10)])
async def test_a_special_time_is_served_from_its_version_on(
    cluster: Cluster, timestamp: int, known_from: int
) -> None:
    cluster.create(0, replicas=1)
    errors = [(await offset(cluster, timestamp, version=known_from - back))[0] for back in (1, 0)]
    served = known_from <= LIST_OFFSETS.max_version
    assert errors == ["unsupported_version", "none" if served else "unsupported_version"]


async def test_followers_get_the_log_end_offset_and_consumers_the_high_watermark(cluster: Cluster) -> None:
    cluster.create(0)
    await append(cluster, 1_000)
    for timestamp, consumers, followers in ((LATEST, 0, 1), (1_000, -1, 0)):
        assert (await offset(cluster, timestamp))[1] == consumers
        assert (await offset(cluster, timestamp, replica_id=1))[1] == followers


async def test_an_unavailable_offset_is_an_error_that_the_client_knows(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0)
    await append(cluster, 1_000)
    cluster.lead_by(topic_partition, 0)
    for error, answer in {
        "unknown_topic_or_partition": await offset(cluster, LATEST, index=5),
        "fenced_leader_epoch": await offset(cluster, LATEST, epoch=0),
        "unknown_leader_epoch": await offset(cluster, LATEST, epoch=2),
        "offset_not_available": await offset(cluster, LATEST, version=5),
        "leader_not_available": await offset(cluster, LATEST, version=4),
    }.items():
        assert answer == (error, -1, -1, -1)


async def test_a_new_leader_has_no_late_offset_until_its_high_watermark_reaches_its_epoch(
    cluster: Cluster,
) -> None:
    (topic_partition,) = cluster.create(0)
    await append(cluster, 1_000)
    cluster.lead_by(topic_partition, 0)
    for timestamp in (LATEST, 1_000, 2_000):
        assert (await offset(cluster, timestamp))[0] == "offset_not_available"
    assert await offset(cluster, EARLIEST) == ("none", 0, -1, 0)
    assert await offset(cluster, 1_000, replica_id=1) == ("none", 0, 1_000, 0)
    assert await offset(cluster, LATEST, replica_id=1) == ("none", 1, -1, 1)
    await cluster.replicate({topic_partition: 1})
    assert await offset(cluster, LATEST) == ("none", 1, -1, 1)
    assert await offset(cluster, 2_000) == ("none", -1, -1, -1)


async def test_the_end_of_an_epoch_is_where_the_next_leader_began(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0, replicas=1)
    await append(cluster, 1_000, 2_000)
    for _ in range(3):
        cluster.lead_by(topic_partition, 0)
    await append(cluster, 3_000)
    ends = [await epoch_end(cluster, epoch) for epoch in (0, 2, 3, 4)]
    assert ends == [("none", 0, 2), ("none", 0, 2), ("none", 3, 3), ("none", -1, -1)]
    assert await epoch_end(cluster, 0, current=3) == ("none", 0, 2)
    assert await epoch_end(cluster, 0, current=2) == ("fenced_leader_epoch", -1, -1)
