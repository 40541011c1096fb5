"""Many consumers with pending fetches wake nobody until there are records, and then are answered together."""

import anyio
import pytest

from examples.broker.cluster import Cluster, ClusterConfig
from examples.broker.protocol.apis import FETCH, PRODUCE
from examples.broker.protocol.client import PeerConnection
from examples.broker.protocol.versions import request_class
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.live.bad_input.valid_requests import fetch_of, produce_of
from tests.examples.broker.wire_batches import wire_batch
from tests.kafka.scenarios.answers import message

# Both ends of each connection are open files of this process.
POLLS = 200
MINUTE = 60.0


def wakeups(cluster: Cluster) -> int:
    """Count the wake-ups of all purgatories' timers."""
    return sum(
        counts.wakeups for purgatories in cluster.statistics().values() for counts in purgatories.values()
    )


@pytest.mark.usefixtures("virtual_time")
async def test_idle_polls_wake_nobody_and_are_answered_together() -> None:
    poll = message(request_class(FETCH, FETCH.max_version), fetch_of("news", max_wait=3_600_000))
    news = message(request_class(PRODUCE, PRODUCE.max_version), produce_of(wire_batch(b"news"), "news"))
    answers: list[int] = []

    async def read(connection: PeerConnection) -> None:
        (topic,) = (await connection.request(FETCH, poll)).responses
        answers.append(topic.partitions[0].high_watermark)
        await connection.aclose()

    async with Cluster.running(ClusterConfig(brokers=1, port=0)) as cluster:
        (node,) = cluster.nodes.values()
        await node.admin.auto_create(["news"])
        began = wakeups(cluster)
        await anyio.sleep(MINUTE)
        without = wakeups(cluster) - began

        async with anyio.create_task_group() as tasks:
            for _ in range(POLLS):
                tasks.start_soon(read, await PeerConnection.open(node.host, node.port, "reader"))
            fetches = node.replicas.fetch_purgatory
            while len(fetches.operations(TopicPartition("news", 0))) < POLLS:
                await anyio.lowlevel.checkpoint()
            began = wakeups(cluster)
            await anyio.sleep(MINUTE)
            assert wakeups(cluster) - began <= without + 1
            assert answers == []
            producer = await PeerConnection.open(node.host, node.port, "writer")
            await producer.request(PRODUCE, news)
            await producer.aclose()
        assert answers == [1] * POLLS
