"""Records survive a round trip between all pairs of clients."""

from itertools import product

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.metadata import TopicConfig
from tests.examples.broker.live.clients.client_interface import (
    CODECS,
    PATIENCE,
    Consumer,
    ConsumerSettings,
    ProducerSettings,
    Record,
    Refused,
)
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.clients.python_clients import CLIENTS, Client

pytestmark = pytest.mark.real_time

RECORDS = (
    Record(b"value"),
    Record(b"value", key=b"key", timestamp=1_700_000_000_001),
    Record(b"", key=b""),
    Record(None, key=b"deleted"),
    Record(b"value", headers=(("one", b"1"), ("two", b""), ("one", b"again"))),
    Record("Größe".encode(), key=bytes(range(256)), timestamp=1_600_000_000_000),
)
ACKS = {"acks=0": 0, "acks=1": 1, "acks=all": -1}
MAX_MESSAGE_BYTES = TopicConfig().max_message_bytes
# Bytes of a batch with one record without key and headers, whose two lengths take three bytes each.
OVERHEAD = 61 + 11


def take(consumer: Consumer, count: int) -> dict[int, Record]:
    """Return records by offset. Raises AssertionError when one takes too long."""
    taken: dict[int, Record] = {}
    for _ in range(count):
        entry = consumer.take(PATIENCE)
        assert entry is not None, f"only {len(taken)} of {count} records came"
        taken[entry[0]] = entry[1]
    return taken


def read(client: Client, topic: LiveTopic, count: int) -> dict[int, Record]:
    """Return the first records of the topic."""
    with client.consumer(topic.cluster.bootstrap_servers, ConsumerSettings()) as consumer:
        consumer.read(topic.name, 0)
        return take(consumer, count)


@pytest.mark.parametrize("acks", ACKS.values(), ids=ACKS.keys())
def test_keys_values_headers_and_timestamps_survive_a_round_trip(
    client: Client, topic: LiveTopic, acks: int
) -> None:
    with client.producer(topic.cluster.bootstrap_servers, ProducerSettings(acks)) as producer:
        offsets = producer.send(topic.name, *RECORDS)
    if acks != 0:
        assert offsets == list(range(len(RECORDS)))
    assert read(client, topic, len(RECORDS)) == dict(enumerate(RECORDS))


@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_batch_is_stored_compressed(client: Client, topic: LiveTopic, codec: str) -> None:
    records = [Record(b"again and " * 100, key=b"%d" % number) for number in range(5)]
    settings = ProducerSettings(compression=codec, linger=0.02)
    with client.producer(topic.cluster.bootstrap_servers, settings) as producer:
        producer.send(topic.name, *records)
    assert set(topic.codecs()) == {CODECS[codec]}
    assert read(client, topic, len(records)) == dict(enumerate(records))


def test_an_idempotent_producer_numbers_its_records(client: Client, topic: LiveTopic) -> None:
    with client.producer(topic.cluster.bootstrap_servers, ProducerSettings(idempotent=True)) as producer:
        for record in RECORDS:
            producer.send(topic.name, record)
    sequences = [batch.producer for batch in topic.batches()]
    assert len({sequence and sequence.producer_id for sequence in sequences}) == 1
    assert [sequence and sequence.first_sequence for sequence in sequences] == list(range(len(RECORDS)))
    assert read(client, topic, len(RECORDS)) == dict(enumerate(RECORDS))


def test_each_client_reads_what_every_client_wrote_with_every_codec(topic: LiveTopic) -> None:
    written: dict[int, Record] = {}
    for client, codec in product(CLIENTS, CODECS):
        records = [
            Record(f"{client.name} {codec} ".encode() * 20, b"%d" % number, (("codec", codec.encode()),))
            for number in range(3)
        ]
        settings = ProducerSettings(compression=codec, idempotent=codec == "zstd", linger=0.02)
        with client.producer(topic.cluster.bootstrap_servers, settings) as producer:
            written |= zip(producer.send(topic.name, *records), records, strict=True)
    assert sorted(written) == list(range(len(CLIENTS) * len(CODECS) * 3))
    for client in CLIENTS:
        assert read(client, topic, len(written)) == written, client.name


def test_the_largest_record_is_accepted_and_one_byte_more_is_refused(
    client: Client, topic: LiveTopic
) -> None:
    largest = Record(bytes(MAX_MESSAGE_BYTES - OVERHEAD))
    with client.producer(topic.cluster.bootstrap_servers, ProducerSettings()) as producer:
        assert producer.send(topic.name, largest) == [0]
        with pytest.raises(Refused) as refused:
            producer.send(topic.name, Record(bytes(MAX_MESSAGE_BYTES - OVERHEAD + 1)))
        assert refused.value.code is ErrorCode.message_too_large
        # The producer still works.
        assert producer.send(topic.name, Record(b"small")) == [1]
    assert topic.batches()[0].size_in_bytes == MAX_MESSAGE_BYTES
    assert read(client, topic, 2) == {0: largest, 1: Record(b"small")}
