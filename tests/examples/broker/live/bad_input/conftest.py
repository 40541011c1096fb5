"""One cluster for clients that send bad input, and a healthy client beside them."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC
from tests.examples.broker.live.bad_input.healthy_client import HealthyClient
from tests.examples.broker.live.bad_input.raw_client import RawClient
from tests.examples.broker.live.bad_input.valid_requests import (
    FOLLOWER,
    HEALTHY_TOPIC,
    LEADER,
    REPLICATED_TOPIC,
    TOPIC,
)
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.live_cluster import LiveCluster, until


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[LiveCluster]:
    """One broker leads every partition and coordinates every group."""
    config = replace(
        CONFIG,
        broker=replace(
            CONFIG.broker,
            # A member whose client disconnects expires soon, whatever session timeout it asks for.
            groups=replace(CONFIG.broker.groups, group_max_session_timeout=2.0),
        ),
    )
    # The follower that a test pauses holds a replica of REPLICATED_TOPIC alone.
    offsets = config.defaults.offsets_topic_num_partitions
    topics = (
        NewTopic(TOPIC, assignment=((LEADER,),)),
        NewTopic(REPLICATED_TOPIC, assignment=((LEADER, FOLLOWER),)),
        NewTopic(HEALTHY_TOPIC, assignment=((LEADER, 2),)),
        NewTopic(OFFSETS_TOPIC, assignment=((LEADER, 2),) * offsets),
    )
    with LiveCluster.running(config) as cluster:
        cluster.create_topics(*topics)
        yield cluster


@pytest.fixture(scope="module")
def healthy_client(shared_cluster: LiveCluster) -> Iterator[HealthyClient]:
    with HealthyClient.running(shared_cluster.bootstrap_servers, HEALTHY_TOPIC) as healthy_client:
        yield healthy_client


@pytest.fixture(scope="module")
def address(shared_cluster: LiveCluster) -> tuple[str, int]:
    """The address of the broker that leads every partition."""
    return shared_cluster.look(lambda cluster: (cluster.nodes[LEADER].host, cluster.nodes[LEADER].port))


@pytest.fixture
def client(address: tuple[str, int]) -> Iterator[RawClient]:
    with RawClient.connected(address) as client:
        yield client


@pytest.fixture(autouse=True)
def _cluster_stays_healthy(
    shared_cluster: LiveCluster, healthy_client: HealthyClient, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """Fails a test that disturbs the healthy client, leaves an operation pending or logs an error."""
    healthy_client.assert_undisturbed()
    yield
    healthy_client.assert_undisturbed()
    until(lambda: not shared_cluster.waiting(apart_from=HEALTHY_TOPIC), explain=shared_cluster.waiting)
    assert not [record for record in caplog.records if record.levelno > logging.WARNING or record.exc_info]
