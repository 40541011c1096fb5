"""A produce waits for its acks, and for nothing else."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.examples.broker.live.clients.client_interface import (
    PATIENCE,
    Client,
    ConsumerSettings,
    ProducerSettings,
    Record,
)
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.live_cluster import LiveCluster, until

pytestmark = pytest.mark.real_time

RECORD = Record(b"value")


@contextmanager
def unfollowed(topic: LiveTopic) -> Iterator[None]:
    """Stop the replication of the topic. Its followers stay in sync."""
    for follower in topic.followers:
        topic.cluster.pause_follower(follower)
    try:
        yield
    finally:
        for follower in topic.followers:
            topic.cluster.resume_follower(follower)


def test_acks_1_waits_for_no_follower_and_acks_all_for_every_one(
    steady_cluster: LiveCluster, client: Client
) -> None:
    topic = LiveTopic.create(steady_cluster, "slow")
    servers = steady_cluster.bootstrap_servers
    with (
        client.producer(servers, ProducerSettings(acks=1)) as hasty,
        client.producer(servers, ProducerSettings(acks=-1)) as patient,
        client.consumer(servers, ConsumerSettings()) as consumer,
        ThreadPoolExecutor(1) as thread,
    ):
        with unfollowed(topic):
            assert hasty.send(topic.name, RECORD) == [0]
            sent = thread.submit(patient.send, topic.name, RECORD)
            until(lambda: (topic.state.leader, "produce") in steady_cluster.pending())
            consumer.read(topic.name, 0)
            assert consumer.take(0.2) is None, "it has read what is not committed"
            assert topic.high_watermark() == 0
            assert not sent.done()
        assert sent.result(PATIENCE) == [1]
        assert topic.high_watermark() == 2
        assert consumer.take(PATIENCE) == (0, RECORD)
        assert consumer.take(PATIENCE) == (1, RECORD)
