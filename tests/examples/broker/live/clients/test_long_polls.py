"""Long polls: a pending fetch returns when there are enough bytes, or after its max_wait."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.examples.broker.live.clients.client_interface import (
    PATIENCE,
    Consumer,
    ConsumerSettings,
    ProducerSettings,
    Record,
)
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.clients.python_clients import Client
from tests.examples.broker.live.live_cluster import LiveCluster, until

pytestmark = pytest.mark.real_time

# Seconds. Shorter than the clients' request timeouts.
ENDLESS = 20.0
HALF = Record(bytes(1000))
MIN_BYTES = 1500


@contextmanager
def waiting(consumer: Consumer, topic: LiveTopic) -> Iterator[Future[tuple[int, Record] | None]]:
    """Take a record in another thread. The block begins when the consumer's fetch waits at the broker."""
    with ThreadPoolExecutor(1) as thread:
        taken = thread.submit(consumer.take, PATIENCE)
        until(topic.waiting_consumers)
        yield taken


def test_too_few_bytes_are_returned_after_max_wait(client: Client, topic: LiveTopic) -> None:
    servers = topic.cluster.bootstrap_servers
    with client.producer(servers, ProducerSettings()) as producer:
        producer.send(topic.name, HALF)
    with client.consumer(servers, ConsumerSettings(MIN_BYTES, 0.25)) as consumer:
        consumer.read(topic.name, 0)
        assert consumer.take(PATIENCE) == (0, HALF)


# Two values, so that a fetch with a default value fails the test.
@pytest.mark.parametrize("max_wait", [ENDLESS, ENDLESS - 1])
def test_records_are_returned_once_there_are_min_bytes(
    client: Client, topic: LiveTopic, max_wait: float
) -> None:
    servers = topic.cluster.bootstrap_servers
    with (
        client.producer(servers, ProducerSettings()) as producer,
        client.consumer(servers, ConsumerSettings(MIN_BYTES, max_wait)) as consumer,
    ):
        producer.send(topic.name, HALF)
        consumer.read(topic.name, 0)
        with waiting(consumer, topic) as taken:
            (fetch,) = topic.waiting_consumers()
            assert fetch.timeout == max_wait
            producer.send(topic.name, HALF)
            assert taken.result(PATIENCE) == (0, HALF)
        assert not fetch.expired
        assert consumer.take(PATIENCE) == (1, HALF)


@pytest.mark.parametrize("acks", [1, -1], ids=["acks=1", "acks=all"])
def test_a_record_wakes_a_waiting_consumer(client: Client, topic: LiveTopic, acks: int) -> None:
    servers = topic.cluster.bootstrap_servers
    with (
        client.producer(servers, ProducerSettings(acks)) as producer,
        client.consumer(servers, ConsumerSettings(fetch_max_wait=ENDLESS)) as consumer,
    ):
        consumer.read(topic.name, 0)
        for offset in range(5):
            with waiting(consumer, topic) as taken:
                (fetch,) = topic.waiting_consumers()
                producer.send(topic.name, HALF)
                assert taken.result(PATIENCE) == (offset, HALF)
            assert not fetch.expired


def test_a_consumer_waits_for_what_is_not_committed(cluster: LiveCluster, client: Client) -> None:
    """And a produce waits for its acks, and for nothing else."""
    topic = LiveTopic.create(cluster, "slow")
    servers = cluster.bootstrap_servers
    with (
        client.producer(servers, ProducerSettings(acks=1)) as hasty,
        client.producer(servers, ProducerSettings(acks=-1)) as patient,
        client.consumer(servers, ConsumerSettings(fetch_max_wait=ENDLESS)) as consumer,
    ):
        cluster.pause_followers(*topic.followers)
        assert hasty.send(topic.name, HALF) == [0]
        (sent,) = patient.begin(topic.name, HALF)
        until(lambda: (topic.state.leader, "produce") in cluster.pending())
        consumer.read(topic.name, 0)
        with waiting(consumer, topic) as taken:
            assert topic.high_watermark() == 0
            assert not sent.done()
            cluster.resume_followers(*topic.followers)
            assert taken.result(PATIENCE) == (0, HALF)
        assert sent.result(PATIENCE) == 1
        assert topic.high_watermark() == 2
        assert consumer.take(PATIENCE) == (1, HALF)
