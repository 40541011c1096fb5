"""A cluster for clients that misbehave, and one that does not."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from examples.broker.cluster import Cluster
from examples.broker.controller.cluster_defaults import OFFSETS_TOPIC
from examples.broker.controller.new_topic import NewTopic
from examples.broker.protocol.connection import ConnectionLimits
from tests.examples.broker.live.bad_input.bystander import Bystander
from tests.examples.broker.live.bad_input.raw_client import RawClient
from tests.examples.broker.live.bad_input.victim import (
    FOLLOWER,
    LEADER,
    READ_TIMEOUT,
    REPLICATED,
    VICTIM,
    fetches_of_victim,
)
from tests.examples.broker.live.cluster import LiveCluster
from tests.examples.broker.live.conftest import CONFIG

BYSTANDERS = "bystanders"


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[LiveCluster]:
    """Clients have to be quick with a request, and a follower that does not fetch stays in sync."""
    config = replace(
        CONFIG,
        broker=replace(
            CONFIG.broker,
            replica_lag_time_max=60.0,
            limits=ConnectionLimits(request_read_timeout=READ_TIMEOUT),
            groups=replace(
                CONFIG.broker.groups,
                # For all members of a test to join at once.
                group_initial_rebalance_delay=0.5,
                # Nobody who vanishes stays for longer, whatever it asked for.
                group_max_session_timeout=2.0,
            ),
        ),
    )
    # One broker leads everything, and coordinates all groups; what may be paused has the one victim only.
    offsets = config.defaults.offsets_topic_num_partitions
    topics = (
        NewTopic(VICTIM, assignment=((LEADER,),)),
        NewTopic(REPLICATED, assignment=((LEADER, FOLLOWER),)),
        NewTopic(BYSTANDERS, assignment=((LEADER, 2),)),
        NewTopic(OFFSETS_TOPIC, assignment=((LEADER, 2),) * offsets),
    )
    with LiveCluster.running(config) as cluster:
        cluster.look(lambda running: [running.controller.create_topic(topic) for topic in topics])
        names = {topic.name for topic in topics}
        cluster.until(
            lambda running: all(
                names <= node.admin.cache.image.topics.keys() for node in running.nodes.values()
            )
        )
        yield cluster


@pytest.fixture(scope="module")
def bystander(shared_cluster: LiveCluster) -> Iterator[Bystander]:
    with Bystander.running(shared_cluster.bootstrap_servers, BYSTANDERS) as bystander:
        yield bystander


@pytest.fixture(scope="module")
def address(shared_cluster: LiveCluster) -> tuple[str, int]:
    """Of the broker that leads everything."""
    return shared_cluster.look(lambda cluster: (cluster.nodes[LEADER].host, cluster.nodes[LEADER].port))


@pytest.fixture
def client(address: tuple[str, int]) -> Iterator[RawClient]:
    with RawClient.connected(address) as client:
        yield client


@pytest.fixture(autouse=True)
def _nobody_notices(
    shared_cluster: LiveCluster, bystander: Bystander, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """Whatever a test does: the bystander goes on, nothing is left waiting, and nothing unforeseen logged."""
    bystander.goes_on()
    yield
    bystander.goes_on()
    shared_cluster.until(lambda cluster: not left_waiting(cluster))
    assert not [record for record in caplog.records if record.levelno > logging.WARNING or record.exc_info]


def left_waiting(cluster: Cluster) -> dict[tuple[int, str], int]:
    """What waits and has no reason to: all but the brokers among themselves, and the bystander's fetch."""
    waiting = {
        (broker_id, name): counts.pending
        for broker_id, purgatories in cluster.statistics().items()
        for name, counts in purgatories.items()
        if name != "fetch"
    }
    waiting[LEADER, "fetch"] = len(fetches_of_victim(cluster))
    return {where: count for where, count in waiting.items() if count}
