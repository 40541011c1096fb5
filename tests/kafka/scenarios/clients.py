"""What librdkafka, aiokafka and kafka-python make of the answers."""

from collections.abc import Callable
from itertools import product
from typing import Final

from tests.examples.broker.live.clients.aiokafka_client import AiokafkaAdmin
from tests.examples.broker.live.clients.client_interface import (
    CODECS,
    PATIENCE,
    ConsumerSettings,
    ProducerSettings,
    Record,
    Refused,
)
from tests.examples.broker.live.clients.python_clients import CLIENTS, Admin
from tests.examples.broker.live.live_cluster import until
from tests.kafka.scenarios.answers import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.scenario import scenario

NAMED: Final = {client.name: client for client in CLIENTS}
RECORDS: Final = (
    Record(b"value", key=b"key", headers=(("one", b"1"), ("one", b"again"))),
    Record(None, key=b"deleted", timestamp=1_600_000_000_000),
    Record(b""),
)

# What an administrator asks of a topic with three records in one partition.
ASKED: Final[dict[str, Callable[[Admin, str], Plain]]] = {
    "create what exists": lambda admin, topic: admin.create_topic(topic, 1, 1, {}),
    "create with too many replicas": lambda admin, topic: admin.create_topic(topic + "-new", 1, 9, {}),
    "create without partitions": lambda admin, topic: admin.create_topic(topic + "-new", 0, 1, {}),
    "create with an illegal name": lambda admin, topic: admin.create_topic("ü", 1, 1, {}),
    "create with an unknown setting": lambda admin, topic: admin.create_topic(
        topic + "-n", 1, 1, {"no": "1"}
    ),
    "create with a wrong value": lambda admin, topic: admin.create_topic(
        topic + "-new", 1, 1, {"retention.ms": "long"}
    ),
    "create what collides": lambda admin, topic: [
        admin.create_topic(name, 1, 1, {}) for name in (topic + ".r", topic + "_r")
    ],
    "delete what is unknown": lambda admin, topic: admin.delete_topic("nowhere"),
    "delete": lambda admin, topic: admin.delete_topic(topic),
    "add no partitions": lambda admin, topic: admin.add_partitions(topic, 1),
    "add partitions to what is unknown": lambda admin, topic: admin.add_partitions("nowhere", 3),
    "alter to a wrong value": lambda admin, topic: admin.alter_topic_configs(topic, {"retention.ms": "long"}),
    "alter what is unknown": lambda admin, topic: admin.alter_topic_configs("nowhere", {"retention.ms": "1"}),
    "alter an unknown setting": lambda admin, topic: admin.alter_topic_configs(topic, {"no": "1"}),
    "describe the settings": lambda admin, topic: admin.topic_configs(topic)["retention.ms"],
    "describe the settings of what is unknown": lambda admin, topic: bool(admin.topic_configs("nowhere")),
    "delete records": lambda admin, topic: admin.delete_records(topic, 2),
    "delete all records": lambda admin, topic: admin.delete_records(topic, -1),
    "delete records beyond the end": lambda admin, topic: admin.delete_records(topic, 99),
    "elect": lambda admin, topic: None if isinstance(admin, AiokafkaAdmin) else admin.elect_preferred(topic),
}


@scenario(*product(NAMED, CODECS))
def round_trip(brokers: Brokers, client: str, codec: str) -> Plain:
    topic = brokers.topic(replicas=((1, 2, 3),))
    offsets = _send(brokers, client, topic, ProducerSettings(compression=codec, linger=0.05))
    return offsets, _read(brokers, client, topic, 0, 3), brokers.fetch(topic)["records"][0]["attributes"]


@scenario(*product(NAMED, (0, 1)))
def acks(brokers: Brokers, client: str, acks: int) -> Plain:
    topic = brokers.topic()
    offsets = _send(brokers, client, topic, ProducerSettings(acks=acks, linger=0.05))
    until(lambda: brokers.offset(topic, -1)["offset"] == 3)
    return offsets if acks else None, _read(brokers, client, topic, 0, 3)


@scenario(*NAMED)
def idempotent(brokers: Brokers, client: str) -> Plain:
    topic = brokers.topic(replicas=((1, 2, 3),))
    offsets = _send(brokers, client, topic, ProducerSettings(idempotent=True, linger=0.05))
    producers = [
        (entry["producer_epoch"], entry["base_sequence"]) for entry in brokers.fetch(topic)["records"]
    ]
    return offsets, producers


@scenario(*NAMED)
def too_large(brokers: Brokers, client: str) -> Plain:
    topic = brokers.topic()
    settings = ProducerSettings()
    with NAMED[client].producer(brokers.cluster.bootstrap_servers, settings) as producer:
        return _outcome(lambda: producer.send(topic, Record(b"x" * (2 << 20)))), brokers.offset(topic, -1)


@scenario(*NAMED)
def time_of_the_append(brokers: Brokers, client: str) -> Plain:
    topic = brokers.topic(configs={"message.timestamp.type": "LogAppendTime"})
    offsets = _send(brokers, client, topic, ProducerSettings())
    return offsets, [{"timestamp": record[2]} for record in _read(brokers, client, topic, 0, 3)]


@scenario(*product(NAMED, (0, 1, 2, 3, 99)))
def read_from(brokers: Brokers, client: str, offset: int) -> Plain:
    """A consumer that asks beyond the log begins at its start again, as it is set to."""
    topic = brokers.topic()
    _send(brokers, client, topic, ProducerSettings())
    if offset == 3:
        _send(brokers, client, topic, ProducerSettings())
    return _read(brokers, client, topic, offset, 1)


@scenario(*NAMED)
def offsets_by_time(brokers: Brokers, client: str) -> Plain:
    topic = brokers.topic()
    _send(brokers, client, topic, ProducerSettings())
    with NAMED[client].consumer(brokers.cluster.bootstrap_servers, ConsumerSettings()) as consumer:
        times = (0, 1_600_000_000_000, 1_600_000_000_001, 1_700_000_000_000, 1_700_000_000_001)
        return [consumer.offset_for_time(topic, time) for time in times], consumer.bounds(topic)


@scenario(*NAMED)
def group(brokers: Brokers, client: str) -> Plain:
    topic = brokers.topic()
    _send(brokers, client, topic, ProducerSettings())
    servers = brokers.cluster.bootstrap_servers
    with NAMED[client].consumer(servers, ConsumerSettings(group_id=brokers.name)) as consumer:
        consumer.subscribe(topic)
        taken = [consumer.take(PATIENCE) for _ in range(3)]
        with NAMED[client].admin(servers) as admin:
            described = _outcome(lambda: admin.group(brokers.name))
            listed = brokers.name in admin.groups()
    return [entry and entry[0] for entry in taken], described, listed


@scenario(*product(NAMED, ASKED))
def administrator(brokers: Brokers, client: str, asked: str) -> Plain:
    topic = brokers.topic(configs={"retention.ms": "1000000"})
    _send(brokers, client, topic, ProducerSettings())
    with NAMED[client].admin(brokers.cluster.bootstrap_servers) as admin:
        answer = _outcome(lambda: ASKED[asked](admin, topic))
        if asked == "delete":
            until(lambda: topic not in admin.topics())
        return answer


def _send(brokers: Brokers, client: str, topic: str, settings: ProducerSettings) -> list[int]:
    with NAMED[client].producer(brokers.cluster.bootstrap_servers, settings) as producer:
        return producer.send(topic, *RECORDS)


def _read(
    brokers: Brokers, client: str, topic: str, offset: int, count: int
) -> list[tuple[int, bytes | None, int, tuple[tuple[str, bytes], ...]]]:
    """Return the offset, the value, the time and the headers of records."""
    taken: list[tuple[int, bytes | None, int, tuple[tuple[str, bytes], ...]]] = []
    with NAMED[client].consumer(brokers.cluster.bootstrap_servers, ConsumerSettings()) as consumer:
        consumer.read(topic, offset)
        while len(taken) < count:
            entry = consumer.take(PATIENCE)
            assert entry is not None
            taken.append((entry[0], entry[1].value, entry[1].timestamp, entry[1].headers))
    return taken


def _outcome(act: Callable[[], Plain]) -> Plain:
    try:
        return act()
    except Refused as refused:
        return refused.code.name.upper()
    except ValueError:
        # kafka-python looks itself whether a setting is known.
        return "the client refuses"
