"""Long polls: a pending fetch returns when there are enough bytes, or after its max_wait."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import pytest

from tests.examples.broker.live.clients.client_interface import (
    PATIENCE,
    Client,
    ConsumerSettings,
    Producer,
    ProducerSettings,
    Record,
)
from tests.examples.broker.live.clients.confluent_client import Confluent
from tests.examples.broker.live.clients.consumer_process import MAX_WAIT
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.live_cluster import until

pytestmark = pytest.mark.real_time

WAKES = 50
# Seconds. Longer than any test, but shorter than the clients' request timeouts.
ENDLESS = 20.0
HALF = Record(bytes(1000))
MIN_BYTES = 1500


@pytest.fixture(params=[0.25, 1.0])
def max_wait(request: pytest.FixtureRequest) -> float:
    """Two values, so that a fetch with a default value fails the test."""
    wait: float = request.param
    return wait


def test_too_few_bytes_are_returned_after_max_wait_and_not_before(
    client: Client, topic: LiveTopic, max_wait: float
) -> None:
    servers = topic.cluster.bootstrap_servers
    with client.producer(servers, ProducerSettings()) as producer:
        producer.send(topic.name, HALF)
    with client.consumer(servers, ConsumerSettings(MIN_BYTES, max_wait)) as consumer:
        began = time.monotonic()
        consumer.read(topic.name, 0)
        assert consumer.take(PATIENCE) == (0, HALF)
        assert max_wait <= time.monotonic() - began < max_wait + ENDLESS / 2


def test_records_are_returned_once_there_are_min_bytes(client: Client, topic: LiveTopic) -> None:
    servers = topic.cluster.bootstrap_servers
    with (
        client.producer(servers, ProducerSettings()) as producer,
        client.consumer(servers, ConsumerSettings(MIN_BYTES, ENDLESS)) as consumer,
    ):
        producer.send(topic.name, HALF)
        consumer.read(topic.name, 0)
        assert consumer.take(0.3) is None
        producer.send(topic.name, HALF)
        assert consumer.take(ENDLESS / 2) == (0, HALF)
        assert consumer.take(ENDLESS / 2) == (1, HALF)


@pytest.mark.parametrize("acks", [1, -1], ids=["acks=1", "acks=all"])
def test_a_record_wakes_a_waiting_consumer(
    client: Client, topic: LiveTopic, acks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The latency is printed."""
    with (
        arrivals_at(client, topic) as arrivals,
        Confluent().producer(topic.cluster.bootstrap_servers, ProducerSettings(acks)) as producer,
    ):
        latencies = [wake(producer, topic, arrivals) * 1000 for _ in range(WAKES)]
    p50, p99 = median(latencies), quantiles(latencies, n=100)[98]
    with capsys.disabled():
        print(f"\n{client.name}, acks={acks}: {WAKES} wakes, p50 {p50:.1f} ms, p99 {p99:.1f} ms", end=" ")
    # Every fetch was completed by the record, none by its timeout.
    assert max(latencies) < MAX_WAIT * 1000 / 2


def wake(producer: Producer, topic: LiveTopic, arrivals: Iterator[float]) -> float:
    """Return the seconds from the produce until the consumer has the record."""
    # The fetches of both followers and of the consumer.
    until(lambda: topic.cluster.pending().get((topic.state.leader, "fetch")) == 3)
    began = time.monotonic()
    producer.send(topic.name, HALF)
    return next(arrivals) - began


@contextmanager
def arrivals_at(client: Client, topic: LiveTopic) -> Iterator[Iterator[float]]:
    """Yield the times at which each record of the topic arrives at a consumer process."""
    arguments = [client.name, topic.cluster.bootstrap_servers, topic.name]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.examples.broker.live.clients.consumer_process", *arguments],
        cwd=Path(__file__).parents[5],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield map(float, process.stdout)
        finally:
            process.kill()
