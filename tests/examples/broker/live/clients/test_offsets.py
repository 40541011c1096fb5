"""Offsets of a log: its bounds, and lookups by timestamp."""

import pytest

from tests.examples.broker.live.clients.client_interface import (
    CODECS,
    PATIENCE,
    ConsumerSettings,
    ProducerSettings,
    Record,
)
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.clients.python_clients import Client

pytestmark = pytest.mark.real_time

NOON = 1_700_000_000_000


def test_bounds_are_the_log_start_offset_and_the_high_watermark(client: Client, topic: LiveTopic) -> None:
    servers = topic.cluster.bootstrap_servers
    with client.consumer(servers, ConsumerSettings()) as consumer, client.admin(servers) as admin:
        assert consumer.bounds(topic.name) == (0, 0)
        with client.producer(servers, ProducerSettings()) as producer:
            producer.send(topic.name, *[Record(b"%d" % number) for number in range(5)])
        assert consumer.bounds(topic.name) == (0, 5)
        assert admin.delete_records(topic.name, 3) == 3
        assert consumer.bounds(topic.name) == (3, 5)
        consumer.read(topic.name, 3)
        assert consumer.take(PATIENCE) == (3, Record(b"3"))


@pytest.mark.parametrize("batches", [4, 1])
def test_a_timestamp_finds_the_first_record_at_or_after_it(
    client: Client, topic: LiveTopic, batches: int
) -> None:
    records = [Record(b"value", timestamp=NOON + second * 1000) for second in range(4)]
    servers = topic.cluster.bootstrap_servers
    # A producer that is closed sends at once what lingers.
    with client.producer(servers, ProducerSettings(linger=0.0 if batches > 1 else 2.0)) as producer:
        if batches > 1:
            for record in records:
                producer.send(topic.name, record)
        else:
            producer.begin(topic.name, *records)
    assert len(topic.batches()) == batches
    with client.consumer(servers, ConsumerSettings()) as consumer:
        assert consumer.offset_for_time(topic.name, 0) == 0
        assert consumer.offset_for_time(topic.name, NOON) == 0
        assert consumer.offset_for_time(topic.name, NOON + 1) == 1
        assert consumer.offset_for_time(topic.name, NOON + 2000) == 2
        assert consumer.offset_for_time(topic.name, NOON + 2500) == 3
        assert consumer.offset_for_time(topic.name, NOON + 3001) is None


def test_a_timestamp_finds_its_record_in_the_batches_of_every_codec(client: Client, topic: LiveTopic) -> None:
    servers = topic.cluster.bootstrap_servers
    sent = 0
    for codec in CODECS:
        # Long enough for all clients to compress them, and in one batch unless the machine is very busy.
        records = [Record(b"value " * 100, timestamp=NOON + sent + number) for number in range(4)]
        with client.producer(servers, ProducerSettings(linger=0.05, compression=codec)) as producer:
            producer.send(topic.name, *records)
        sent += len(records)
    assert set(topic.codecs()) == set(CODECS.values())
    with client.consumer(servers, ConsumerSettings()) as consumer:
        found = [consumer.offset_for_time(topic.name, NOON + offset) for offset in range(sent)]
    assert found == list(range(sent))
