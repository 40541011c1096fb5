"""The brokers for tests of code that uses Kafka."""

from collections.abc import Callable, Iterator

import anyio
import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from examples.broker.cluster import Cluster
from examples.broker.controller.new_topic import NewTopic
from examples.broker.testing import ThreadedCluster, reset, running_cluster

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def threaded_cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster.running() as cluster:
        yield cluster


def create_topic(cluster: ThreadedCluster) -> None:
    cluster.look(lambda running: running.controller.create(NewTopic("events", 3, 3)))


@pytest.mark.parametrize(
    "harm",
    [
        lambda brokers: brokers.pause(1),
        lambda brokers: brokers.cut_off(1),
        lambda brokers: brokers.slow_down(1, 60.0),
        lambda brokers: brokers.pause_follower(1),
        lambda brokers: brokers.stop(1),
        lambda brokers: brokers.kill(1),
    ],
    ids=["pause", "cut off", "slow down", "pause follower", "stop", "kill"],
)
def test_a_reset_ends_every_fault_and_deletes_every_topic(
    threaded_cluster: ThreadedCluster, harm: Callable[[ThreadedCluster], None]
) -> None:
    create_topic(threaded_cluster)
    harm(threaded_cluster)
    threaded_cluster.reset()
    healthy = ("running", False, False, 0)
    assert threaded_cluster.look(state_of) == {1: healthy, 2: healthy, 3: healthy}


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


def test_a_reset_of_an_empty_cluster_changes_nothing(threaded_cluster: ThreadedCluster) -> None:
    threaded_cluster.reset()
    version = threaded_cluster.look(lambda cluster: cluster.controller.image.version)
    threaded_cluster.reset()
    assert threaded_cluster.look(lambda cluster: cluster.controller.image.version) == version


def test_groups_and_their_offsets_end_with_a_reset(threaded_cluster: ThreadedCluster) -> None:
    settings = {
        "bootstrap.servers": threaded_cluster.bootstrap_servers,
        "group.id": "readers",
        "log_level": 0,
    }
    create_topic(threaded_cluster)
    consumer = Consumer(settings)
    commit = [TopicPartition("events", 0, 7)]
    assert consumer.commit(offsets=commit, asynchronous=False)[0].offset == 7
    consumer.close()
    threaded_cluster.reset()
    create_topic(threaded_cluster)
    consumer = Consumer(settings)
    assert consumer.committed(commit, 10)[0].offset == OFFSET_INVALID
    consumer.close()


async def test_a_cluster_runs_on_the_loop_of_the_test() -> None:
    with anyio.fail_after(60):
        async with running_cluster() as cluster:
            for node in cluster.nodes.values():
                await node.admin.auto_create(["events"])
            await reset(cluster)
            assert not any(node.admin.cache.image.topics for node in cluster.nodes.values())
