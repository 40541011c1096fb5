"""DescribeLogDirs and DescribeProducers: requests and responses."""

import pytest
from kio.schema.describe_log_dirs.v4 import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.request import DescribableLogDirTopic
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResult
from kio.schema.describe_producers.v0 import DescribeProducersRequest
from kio.schema.describe_producers.v0.request import TopicRequest
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from examples.broker.handlers.logs import describe_log_dirs, describe_producers
from examples.broker.replication.requests import LEADER_ACK, ProduceParams
from examples.broker.storage.wire_batch import WireRecordBatch
from tests.examples.broker.controller.controlled_cluster import CONTEXT
from tests.examples.broker.leader_broker import Cluster, events
from tests.examples.broker.wire_batches import NO_PRODUCER, wire_batch

EVENTS = TopicName("events")
BATCH = wire_batch(b"one", b"two")


async def log_dir(
    cluster: Cluster, *indexes: int, every_topic: bool = False, topic: TopicName = EVENTS
) -> DescribeLogDirsResult:
    asked = DescribableLogDirTopic(topic=topic, partitions=tuple(i32(index) for index in indexes))
    request = DescribeLogDirsRequest(topics=None if every_topic else (asked,))
    response = await describe_log_dirs(cluster.broker, CONTEXT, request)
    assert response.error_code is ErrorCode.none
    (result,) = response.results
    assert result.error_code is ErrorCode.none
    return result


def sizes(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in result.topics
        for partition in topic.partitions
    }


async def append(cluster: Cluster, data: bytes, partition: int = 0) -> None:
    batch = WireRecordBatch.parse(data)
    response = await cluster.broker.append(ProduceParams(LEADER_ACK), {events(partition): batch})
    assert response[events(partition)].base_offset >= 0


async def test_the_replicas_in_memory_have_their_sizes(cluster: Cluster) -> None:
    cluster.create(0, 1)
    await append(cluster, BATCH)
    described = await log_dir(cluster, every_topic=True)
    assert (described.log_dir, described.total_bytes, described.usable_bytes) == ("memory", -1, -1)
    assert sizes(described) == {("events", 0): len(BATCH), ("events", 1): 0}
    assert all(not entry.is_future_key and entry.offset_lag == 0 for entry in described.topics[0].partitions)


async def test_only_the_requested_replicas_are_described(cluster: Cluster) -> None:
    cluster.create(0, 1)
    assert sizes(await log_dir(cluster, 1, 7)) == {("events", 1): 0}
    assert sizes(await log_dir(cluster, 0, topic=TopicName("missing"))) == {}


async def producers(cluster: Cluster, index: int = 0) -> tuple[ErrorCode, set[tuple[int, int, int, int]]]:
    request = DescribeProducersRequest(topics=(TopicRequest(name=EVENTS, partition_indexes=(i32(index),)),))
    (topic,) = (await describe_producers(cluster.broker, CONTEXT, request)).topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index) == (EVENTS, index)
    assert all(
        (entry.coordinator_epoch, entry.current_txn_start_offset) == (-1, -1)
        for entry in partition.active_producers
    )
    return partition.error_code, {
        (entry.producer_id, entry.producer_epoch, entry.last_sequence, entry.last_timestamp)
        for entry in partition.active_producers
    }


async def test_each_idempotent_producer_is_described_with_its_last_batch(cluster: Cluster) -> None:
    cluster.create(0)
    for producer, time in [((7, 0, 0), 1_000), ((7, 0, 2), 2_000), ((8, 3, 0), 3_000), (NO_PRODUCER, 4_000)]:
        await append(cluster, wire_batch(b"one", b"two", producer=producer, timestamps=(time, time)))
    assert await producers(cluster) == (ErrorCode.none, {(7, 0, 3, 2_000), (8, 3, 1, 3_000)})
    cluster.partition(events()).log.increment_log_start_offset(4)
    assert await producers(cluster) == (ErrorCode.none, {(8, 3, 1, 3_000)})


@pytest.mark.parametrize(
    ("index", "error"), [(0, ErrorCode.not_leader_or_follower), (5, ErrorCode.unknown_topic_or_partition)]
)
async def test_producers_are_known_to_the_leader_alone(
    cluster: Cluster, index: int, error: ErrorCode
) -> None:
    (topic_partition,) = cluster.create(0)
    cluster.lead_by(topic_partition, 1)
    assert await producers(cluster, index) == (error, set())
