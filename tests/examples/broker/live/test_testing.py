"""The brokers for tests of code that uses Kafka."""

from collections.abc import Callable
from operator import methodcaller

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from examples.broker.cluster import Cluster
from examples.broker.controller.new_topic import NewTopic
from examples.broker.testing import reset, running_cluster
from tests.examples.broker.live.live_cluster import LiveCluster

pytestmark = pytest.mark.real_time


def create_topic(cluster: LiveCluster) -> None:
    cluster.look(lambda running: running.controller.create(NewTopic("events", 3, 3)))


@pytest.mark.parametrize(
    "harm",
    [
        *(methodcaller(fault, 1) for fault in ("pause", "cut_off", "pause_follower", "stop", "kill")),
        methodcaller("slow_down", 1, 60.0),
    ],
    ids=str,
)
def test_a_reset_ends_every_fault_and_deletes_every_topic(
    shared_cluster: LiveCluster, harm: Callable[[LiveCluster], None]
) -> None:
    create_topic(shared_cluster)
    harm(shared_cluster)
    shared_cluster.reset()
    healthy = ("running", False, False, 0)
    assert shared_cluster.look(state_of) == {1: healthy, 2: healthy, 3: healthy}


def state_of(cluster: Cluster) -> dict[int, tuple[str, bool, bool, int]]:
    """The status of each broker, whether it is fenced, whether it does not replicate, and its topics."""
    image = cluster.controller.image
    return {
        broker_id: (
            node.status,
            image.brokers[broker_id].fenced,
            node.fetchers.paused,
            len(node.admin.cache.image.topics),
        )
        for broker_id, node in cluster.nodes.items()
    }


def test_a_reset_of_an_empty_cluster_changes_nothing(shared_cluster: LiveCluster) -> None:
    shared_cluster.reset()
    version = shared_cluster.look(lambda cluster: cluster.controller.image.version)
    shared_cluster.reset()
    assert shared_cluster.look(lambda cluster: cluster.controller.image.version) == version


def test_groups_and_their_offsets_end_with_a_reset(shared_cluster: LiveCluster) -> None:
    settings = {
        "bootstrap.servers": shared_cluster.bootstrap_servers,
        "group.id": "readers",
        "log_level": 0,
    }
    create_topic(shared_cluster)
    consumer = Consumer(settings)
    commit = [TopicPartition("events", 0, 7)]
    assert consumer.commit(offsets=commit, asynchronous=False)[0].offset == 7
    consumer.close()
    shared_cluster.reset()
    create_topic(shared_cluster)
    consumer = Consumer(settings)
    assert consumer.committed(commit, 10)[0].offset == OFFSET_INVALID
    consumer.close()


async def test_a_cluster_runs_on_the_loop_of_the_test() -> None:
    async with running_cluster() as cluster:
        for node in cluster.nodes.values():
            await node.admin.auto_create(["events"])
        await reset(cluster)
        assert not any(node.admin.cache.image.topics for node in cluster.nodes.values())
