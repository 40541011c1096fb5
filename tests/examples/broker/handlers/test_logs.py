"""DescribeLogDirs and DescribeProducers: requests and responses."""

import pytest

from examples.broker.protocol import apis
from examples.broker.replication.requests import LEADER_ACK, ProduceParams
from examples.broker.storage.wire_batch import WireRecordBatch
from tests.examples.broker.handlers.plain_requests import ask
from tests.examples.broker.leader_broker import Cluster, events
from tests.examples.broker.protocol.plain_messages import Plain
from tests.examples.broker.wire_batches import NO_PRODUCER, wire_batch

BATCH = wire_batch(b"one", b"two")


async def log_dir(cluster: Cluster, asked: dict[str, list[int]] | None) -> Plain:
    topics = None
    if asked is not None:
        topics = [{"topic": topic, "partitions": indexes} for topic, indexes in asked.items()]
    answer = await ask(cluster.broker, apis.DESCRIBE_LOG_DIRS, topics=topics)
    (result,) = answer["results"]
    assert answer["error_code"] == result["error_code"] == "none"
    return result


def sizes(result: Plain) -> dict[tuple[str, int], int]:
    return {
        (topic["name"], partition["partition_index"]): partition["partition_size"]
        for topic in result["topics"]
        for partition in topic["partitions"]
    }


async def append(cluster: Cluster, data: bytes) -> None:
    batch = WireRecordBatch.parse(data)
    response = await cluster.broker.append(ProduceParams(LEADER_ACK), {events(): batch})
    assert response[events()].base_offset >= 0


async def test_the_replicas_in_memory_have_their_sizes(cluster: Cluster) -> None:
    cluster.create(0, 1)
    await append(cluster, BATCH)
    described = await log_dir(cluster, None)
    assert (described["log_dir"], described["total_bytes"], described["usable_bytes"]) == ("memory", -1, -1)
    assert sizes(described) == {("events", 0): len(BATCH), ("events", 1): 0}
    partitions = described["topics"][0]["partitions"]
    assert all((entry["is_future_key"], entry["offset_lag"]) == (False, 0) for entry in partitions)
    assert sizes(await log_dir(cluster, {"events": [1, 7], "missing": [0]})) == {("events", 1): 0}


async def producers(cluster: Cluster, index: int = 0) -> tuple[str, set[tuple[int, int, int, int]]]:
    topics = [{"name": "events", "partition_indexes": [index]}]
    answer = await ask(cluster.broker, apis.DESCRIBE_PRODUCERS, topics=topics)
    ((partition,),) = [topic["partitions"] for topic in answer["topics"] if topic["name"] == "events"]
    known = partition["active_producers"]
    assert partition["partition_index"] == index
    assert all((entry["coordinator_epoch"], entry["current_txn_start_offset"]) == (-1, -1) for entry in known)
    fields = ("producer_id", "producer_epoch", "last_sequence", "last_timestamp")
    return partition["error_code"], {tuple(entry[field] for field in fields) for entry in known}


async def test_each_idempotent_producer_is_described_with_its_last_batch(cluster: Cluster) -> None:
    cluster.create(0)
    for producer, time in [((7, 0, 0), 1_000), ((7, 0, 2), 2_000), ((8, 3, 0), 3_000), (NO_PRODUCER, 4_000)]:
        await append(cluster, wire_batch(b"one", b"two", producer=producer, timestamps=(time, time)))
    assert await producers(cluster) == ("none", {(7, 0, 3, 2_000), (8, 3, 1, 3_000)})
    cluster.partition(events()).log.increment_log_start_offset(4)
    assert await producers(cluster) == ("none", {(8, 3, 1, 3_000)})


@pytest.mark.parametrize(
    ("index", "error"), [(0, "not_leader_or_follower"), (5, "unknown_topic_or_partition")]
)
async def test_producers_are_known_to_the_leader_alone(cluster: Cluster, index: int, error: str) -> None:
    (topic_partition,) = cluster.create(0)
    cluster.lead_by(topic_partition, 1)
    assert await producers(cluster, index) == (error, set())
