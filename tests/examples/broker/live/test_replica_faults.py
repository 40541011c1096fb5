"""Replicas that hang, leave and return, as a producer with acks=all sees them."""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from examples.broker.cluster import Cluster
from examples.broker.metadata import TopicConfig
from examples.broker.replication.partition import Partition
from tests.examples.broker.live.clients.client_interface import (
    PATIENCE,
    Producer,
    ProducerSettings,
    Record,
    Refused,
)
from tests.examples.broker.live.clients.confluent_client import Confluent, ConfluentProducer
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.live_cluster import LiveCluster, until

pytestmark = pytest.mark.real_time

# Seconds. A produce that waits for a paused follower always reaches it.
REQUEST_TIMEOUT = 1.0
RECORD = Record(b"value")


@pytest.fixture
def topic(cluster: LiveCluster) -> LiveTopic:
    """A topic with one partition, led by broker 1, that needs two replicas in sync."""
    config = TopicConfig(min_insync_replicas=2)
    return LiveTopic.create(cluster, "events", assignment=((1, 2, 3),), config=config)


@pytest.fixture
def producer(cluster: LiveCluster) -> Iterator[Producer]:
    with Confluent().producer(cluster.bootstrap_servers, ProducerSettings()) as producer:
        yield producer


@contextmanager
def one_shot(topic: LiveTopic, request_timeout: float = PATIENCE) -> Iterator[Producer]:
    """A producer that has sent a record, and does not send anything twice."""
    settings = {"retries": 0, "linger.ms": 0, "request.timeout.ms": round(request_timeout * 1000)}
    with ConfluentProducer.running(topic.cluster.bootstrap_servers, settings) as producer:
        producer.send(topic.name, RECORD)
        yield producer


def ends(topic: LiveTopic) -> dict[int, int]:
    return topic.on_each(lambda partition: partition.log.log_end_offset)


def stored(partition: Partition) -> list[bytes]:
    return [batch.data for batch in partition.log.batches()]


def remove_lagging(topic: LiveTopic) -> None:
    """Let the leader remove the replicas that are not at its end, as if they had lagged for long enough."""

    def look(cluster: Cluster) -> None:
        replicas = cluster.nodes[topic.state_in(cluster).leader].replicas
        later = anyio.current_time() + 2 * CONFIG.broker.replica_lag_time_max
        if replicas.partitions.leader(topic.partition).maybe_shrink_isr(later):
            replicas._check_all([topic.partition])

    topic.cluster.look(look)


def test_a_record_waits_for_a_hanging_follower_until_it_has_left_the_in_sync_replicas(
    topic: LiveTopic, producer: Producer
) -> None:
    producer.send(topic.name, RECORD)
    topic.cluster.pause_followers(3)
    (late,) = producer.begin(topic.name, RECORD)
    until(lambda: ends(topic) == {1: 2, 2: 2, 3: 1})
    assert not late.done()
    remove_lagging(topic)
    assert late.result(PATIENCE) == 1
    assert topic.state.in_sync == (1, 2)
    topic.cluster.resume_followers(3)
    until(lambda: topic.state.in_sync == (1, 2, 3))
    assert topic.on_each(stored)[3] == topic.on_each(stored)[1]


def test_below_min_insync_replicas_nothing_is_appended(topic: LiveTopic) -> None:
    with (
        Confluent().producer(topic.cluster.bootstrap_servers, ProducerSettings(acks=1)) as hasty,
        one_shot(topic) as producer,
    ):
        topic.cluster.pause_followers(2, 3)
        hasty.send(topic.name, RECORD)
        remove_lagging(topic)
        with pytest.raises(Refused, match="NOT_ENOUGH_REPLICAS"):
            producer.send(topic.name, RECORD)
        assert ends(topic) == {1: 2, 2: 1, 3: 1}
        topic.cluster.resume_followers(2, 3)
        until(lambda: topic.state.in_sync == (1, 2, 3))
        assert producer.send(topic.name, RECORD) == [2]


@pytest.mark.parametrize("leave", [False, True])
def test_a_record_that_is_not_committed_in_time_is_committed_later(topic: LiveTopic, leave: bool) -> None:
    """Below the minimum of in-sync replicas, the high watermark does not move (KAFKA-15583)."""
    with one_shot(topic, REQUEST_TIMEOUT) as producer:
        topic.cluster.pause_followers(2, 3)
        (late,) = producer.begin(topic.name, RECORD)
        until(lambda: ends(topic)[1] == 2)
        if leave:
            remove_lagging(topic)
        with pytest.raises(Refused, match="REQUEST_TIMED_OUT"):
            late.result(PATIENCE)
        assert topic.state.in_sync == ((1,) if leave else (1, 2, 3))
        assert topic.high_watermark() == 1
        topic.cluster.resume_followers(2, 3)
        until(lambda: topic.high_watermark() == 2)
