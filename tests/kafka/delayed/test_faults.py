"""The designs under load, while instances and brokers fail."""

from __future__ import annotations

import time
from dataclasses import replace

import anyio
import pytest
from anyio import to_thread
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient

from examples.delayed.batches import BATCH
from examples.delayed.clients import partitions_of, reading
from examples.delayed.demo.instances import Instances
from examples.delayed.demo.traffic import Traffic
from examples.delayed.service import DESIGNS
from examples.delayed.settings import Settings, Topics
from examples.delayed.wheel.partition import WORKERS
from tests.examples.delayed.running import PARTITIONS
from tests.kafka.kafka_cluster import PATIENCE, KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.real_time]

RECORDS = 20_000
SECONDS = 60.0
DELAYS = (0.1, 8.0)
LEVELS = (500, 1_000, 2_000, 4_000, 8_000)
# A killed instance repeats what it was handling: a batch of the records and one of each partition of a level,
# or what the workers of each partition were forwarding.
MOST_TWICE = {
    "requeue": BATCH,
    "levels": BATCH * (1 + PARTITIONS * len(LEVELS)),
    "wheel": WORKERS * PARTITIONS,
}


class Brokers:
    """The brokers of a topic, and what happens to them. Its blocking calls run in threads."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    async def restart_leader(self, *, kill: bool) -> None:
        """Kill the leader of the first partition, or stop it in good order, and start it again."""
        node = self._cluster.nodes[await to_thread.run_sync(self._leader)]
        await to_thread.run_sync(node.kill if kill else node.stop)
        node.start()
        await to_thread.run_sync(self._cluster.ready)

    async def move_leaders(self) -> None:
        """Let the first replica of each partition lead it again."""
        await to_thread.run_sync(self._elect)

    def _leader(self) -> int:
        found = self._admin.list_topics(self._topic, timeout=PATIENCE).topics[self._topic]
        return int(found.partitions[0].leader)

    def _elect(self) -> None:
        partitions = [TopicPartition(self._topic, number) for number in range(PARTITIONS)]
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            elected = self._admin.elect_leaders(ElectionType.PREFERRED, partitions).result(PATIENCE)
            if any(error is None for error in elected.values()):
                return
            # A replica that was away is in sync soon.
            self._admin.poll(0.1)
        raise TimeoutError("no leader has moved")


@pytest.mark.parametrize("design", DESIGNS)
async def test_nothing_is_lost_or_early_while_instances_and_brokers_fail(
    design: str, settings: Settings, cluster: KafkaCluster, figures: list[str]
) -> None:
    settings = replace(settings, levels=LEVELS)
    brokers = Brokers(cluster, settings.topics.requests)
    async with (
        Instances.of(design, settings, "abc") as instances,
        Traffic.of(settings) as traffic,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(traffic.send, RECORDS, SECONDS, DELAYS, 1)
        await traffic.delivered(1_000)
        killed = instances.leader()
        instances.kill(killed)
        await instances.start(killed)
        await traffic.delivered(2_000)
        await brokers.restart_leader(kill=True)
        await traffic.delivered(1_000)
        await brokers.move_leaders()
        # The group moves partitions from member to member.
        await instances.start("d")
        await traffic.delivered(1_000)
        await instances.stop("b")
        await brokers.restart_leader(kill=False)
    assert list(traffic.deliveries.faults()) == []
    found = traffic.deliveries.figures()
    assert found.delivered + found.cancelled == found.scheduled == RECORDS
    assert found.duplicates <= MOST_TWICE[design]
    assert await first_offset(settings, topic_of_waiting_records(design, settings.topics)) > 0
    figures.append(
        f"{design}: {found.delivered:,} records arrived, {found.cancelled:,} were cancelled, "
        f"{found.early} came early, {found.duplicates} twice; late by {found.p50:,.0f} ms (p50), "
        f"{found.p99:,.0f} ms (p99), {found.worst:,.0f} ms (max)"
    )


def topic_of_waiting_records(design: str, topics: Topics) -> str:
    """The wheel keeps the records on its disks, and what it has forwarded in a topic."""
    return {"requeue": topics.requests, "levels": topics.level(LEVELS[-1]), "wheel": topics.done}[design]


async def first_offset(settings: Settings, topic: str) -> int:
    """The lowest of the offsets at which the partitions of a topic begin."""
    async with reading(settings.bootstrap) as consumer:
        offsets = await consumer.beginning_offsets(partitions_of(topic, range(PARTITIONS)))
    return min(map(int, offsets.values()))
