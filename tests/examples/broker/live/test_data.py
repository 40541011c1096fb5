"""Brokers that end without warning, and others that go on with what is in their directory."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import anyio
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientTopicPartition

from examples.broker.cluster import Cluster
from examples.broker.errors import ErrorCode
from examples.broker.metadata import NO_LEADER, PartitionState
from examples.broker.node.node import Node
from examples.broker.replication.produce import ProduceParams
from examples.broker.storage.disk import Disk
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.live.brokers_process import (
    PARTITIONS,
    TOPIC,
    BrokersProcess,
    create_topic,
    stored_faults,
    values,
)
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.idempotent_writers import AiokafkaWriter, ConfluentWriter, Writer
from tests.examples.broker.live.live_cluster import PATIENCE, until
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

EVENTS = TopicPartition(TOPIC, 0)
KILLS = 5
# The most records that are acknowledged before a kill, and seconds between two records.
BEFORE = 300
PACE = 0.001


@asynccontextmanager
async def running(data: Path) -> AsyncIterator[Cluster]:
    with anyio.fail_after(PATIENCE):
        async with Cluster.running(replace(CONFIG, data=data)) as cluster:
            for node in cluster.nodes.values():
                await node.admin.auto_create([TOPIC])
            yield cluster


def state(cluster: Cluster) -> PartitionState:
    found = cluster.controller.image.partition(EVENTS)
    assert found is not None
    return found


async def leader(cluster: Cluster) -> Node:
    """The leader, once all replicas are in sync."""
    while state(cluster).leader == NO_LEADER or len(state(cluster).in_sync) < 3:
        await cluster.controller.image_after(cluster.controller.image.version)
    return cluster.nodes[state(cluster).leader]


async def produce(node: Node, value: bytes, sequence: int) -> int:
    batch = WireRecordBatch.parse(wire_batch(value, producer=(0, 0, sequence)))
    answer = (await node.replicas.append(ProduceParams(), {EVENTS: batch}))[EVENTS]
    assert answer.error is ErrorCode.none
    return answer.base_offset


async def test_brokers_go_on_with_what_others_have_acknowledged_before_they_were_killed(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as cluster:
        node = await leader(cluster)
        assert [await produce(node, b"%d" % number, number) for number in range(3)] == [0, 1, 2]
        cluster_id, first = cluster.controller.cluster_id, state(cluster)
        for broker_id in list(cluster.nodes):
            await cluster.kill(broker_id)
    async with running(tmp_path) as cluster:
        node = await leader(cluster)
        log = node.replicas.partitions.leader(EVENTS).log
        assert values(log.batches()) == {0: 0, 1: 1, 2: 2}
        assert await produce(node, b"2", 2) == 2, "a retry"
        assert await produce(node, b"3", 3) == 3
        assert state(cluster).leader_epoch > first.leader_epoch
        assert cluster.controller.cluster_id == cluster_id


async def test_brokers_that_were_stopped_in_good_order_know_their_high_watermarks(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        node = await leader(cluster)
        await produce(node, b"0", 0)
        topic_id = cluster.controller.image.topics[TOPIC].topic_id
    assert Disk(tmp_path / f"broker-{node.broker_id}").open(EVENTS, topic_id, 1000).high_watermark == 1


async def test_a_deleted_topic_leaves_no_file(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        await produce(await leader(cluster), b"0", 0)
        assert len(replicas(tmp_path)) == 3
        for node in cluster.nodes.values():
            await node.admin.delete_topics([TOPIC], PATIENCE)
    assert replicas(tmp_path) == []


def replicas(data: Path) -> list[Path]:
    return list(data.glob("broker-*/*"))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("writer_type", [ConfluentWriter, AiokafkaWriter])
def test_no_acknowledged_record_is_lost_when_the_process_is_killed(
    writer_type: type[Writer], tmp_path: Path
) -> None:
    random = Random(17)
    data, log = tmp_path / "data", tmp_path / "log"
    brokers = BrokersProcess(data, log)
    with brokers.running():
        create_topic(brokers.bootstrap_servers)
        with (
            writer_type.running(brokers.bootstrap_servers, TOPIC) as writer,
            ThreadPoolExecutor(1) as executor,
        ):
            for _ in range(KILLS):
                target = len(writer) + random.randint(1, BEFORE)
                harm = executor.submit(kill_and_start, brokers, writer, target)
                while not harm.done():
                    writer.send(writer.sent % PARTITIONS, writer.sent)
                    wait([harm], PACE)
                harm.result()
            writer.flush()
    # Where a start takes long, the client gives up records. They are not acknowledged.
    assert len(writer) + len(writer.failed) == writer.sent
    assert not (faults := stored_faults(data, writer)), "\n".join(faults[:20])
    assert all(": cut off " in line for line in log.read_text().splitlines()), log.read_text()


def kill_and_start(brokers: BrokersProcess, writer: Writer, target: int) -> None:
    until(lambda: len(writer) >= target, within=PATIENCE * 4)
    brokers.kill()
    brokers.start()


@pytest.mark.long
def test_a_consumer_group_goes_on_where_it_was_when_the_process_was_killed(tmp_path: Path) -> None:
    brokers = BrokersProcess(tmp_path / "data", tmp_path / "log")
    with brokers.running():
        create_topic(brokers.bootstrap_servers)
        with ConfluentWriter.running(brokers.bootstrap_servers, TOPIC) as writer:
            for number in range(90):
                writer.send(number % PARTITIONS, number)
            writer.flush()
        first = consumed(brokers.bootstrap_servers, 40)
        brokers.kill()
        brokers.start()
        second = consumed(brokers.bootstrap_servers, 50)
        assert sorted(first + second) == list(range(90))
        brokers.kill()
        brokers.start()
        assert committed(brokers.bootstrap_servers) == [30] * PARTITIONS


def consumed(bootstrap_servers: str, count: int) -> list[int]:
    """Consume so many records as a member of a group, and commit them."""
    consumer = group_member(bootstrap_servers)
    consumer.subscribe([TOPIC])
    found: list[int] = []
    while len(found) < count:
        message = consumer.poll(PATIENCE)
        assert message is not None
        found.append(int(message.value() or b""))
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def committed(bootstrap_servers: str) -> list[int]:
    consumer = group_member(bootstrap_servers)
    partitions = [ClientTopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    found = consumer.committed(partitions, PATIENCE)
    consumer.close()
    return [each.offset for each in found]


def group_member(bootstrap_servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "group",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # The group may not know that the member before this one has left.
            "session.timeout.ms": 2000,
            "log_level": 0,
        }
    )
