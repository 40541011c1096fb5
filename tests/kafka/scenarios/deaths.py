"""What clients see while a broker is dead, and when it is back."""

from collections.abc import Iterator
from contextlib import contextmanager

from examples.broker.protocol.apis import (
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC_PARTITIONS,
    ELECT_LEADERS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
)
from tests.examples.broker.live.live_cluster import PATIENCE, until
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.record_batches import batch
from tests.kafka.scenarios.scenario import scenario

VICTIM = 3
REPLICAS = ((3, 1, 2), (1, 3, 2))


@scenario()
def what_all_clients_see(brokers: Brokers) -> Plain:
    """One death and one return for all requests, since each takes seconds."""
    topic, alone = brokers.topic(replicas=REPLICAS), brokers.topic("-alone", replicas=((VICTIM,),))
    before = _seen(brokers, topic)
    for partition, leader in ((0, VICTIM), (1, 1)):
        brokers.produce(topic, batch(b"1", b"2"), partition=partition, to=leader)
    with _dead(brokers, topic):
        during = _seen(brokers, topic)
        requests = {
            "produce": brokers.produce(topic, batch(b"3"), partition=0),
            "fetch": brokers.fetch(topic, 0, partition=0),
            "fetch in the old epoch": brokers.fetch(topic, 0, partition=0, leader_epoch=0),
            "fetch after the old epoch": brokers.fetch(topic, 3, partition=0, last_fetched_epoch=0),
            "fetch at the end of the old epoch": brokers.fetch(topic, 2, partition=0, last_fetched_epoch=0),
            "offset in the old epoch": brokers.offset(topic, -1, leader_epoch=0),
            "latest offset": brokers.offset(topic, -1),
            "earliest offset": brokers.offset(topic, -2),
            "end of the old epoch": _end_of_epoch(brokers, topic, 0),
            "end of the new epoch": _end_of_epoch(brokers, topic, 1),
            "end of a later epoch": _end_of_epoch(brokers, topic, 2),
            "preferred election": _elect(brokers, topic),
            "election without a replica": _elect(brokers, alone),
            "unclean election without a replica": _elect(brokers, alone, kind=1),
            "topic without a leader": brokers.described(alone),
        }
    after = _seen(brokers, topic)
    requests["preferred election afterwards"] = _elect(brokers, topic)
    until(lambda: _leader(brokers, topic) == VICTIM, within=PATIENCE)
    brokers.until_led(topic)
    requests["latest offset afterwards"] = brokers.offset(topic, -1, to=VICTIM)
    requests["end of the second epoch"] = _end_of_epoch(brokers, topic, 1, to=VICTIM)
    return before, during, requests, after, _seen(brokers, topic)


@contextmanager
def _dead(brokers: Brokers, topic: str) -> Iterator[None]:
    """Kill a broker, and wait until the others know. Start it again, and wait until it is in sync."""
    brokers.cluster.kill(VICTIM)
    brokers.disconnect(VICTIM)
    try:
        for broker in (1, 2):
            until(
                lambda broker=broker: len(brokers.ask(METADATA, to=broker, topics=[])["brokers"]) == 2,  # type: ignore[misc]  # mypy#15459
                within=4 * PATIENCE,
            )
            until(lambda broker=broker: _leader(brokers, topic, to=broker) in (1, 2), within=PATIENCE)  # type: ignore[misc]  # mypy#15459
        until(lambda: brokers.offset(topic, -1, to=1)["error_code"] == "none", within=PATIENCE)
        yield
    finally:
        brokers.cluster.start(VICTIM)
        for broker in (1, 2):
            until(
                lambda broker=broker: _in_sync(brokers, topic, to=broker) == [3, 3],  # type: ignore[misc]  # mypy#15459
                within=4 * PATIENCE,
            )


def _leader(brokers: Brokers, topic: str, *, to: int = 1) -> int:
    return int(_partitions(brokers, topic, to=to)[0]["leader_id"])


def _in_sync(brokers: Brokers, topic: str, *, to: int = 1) -> list[int]:
    """Return how many replicas of each partition are in sync and led."""
    return [
        len(partition["isr_nodes"]) if partition["leader_id"] > 0 else 0
        for partition in _partitions(brokers, topic, to=to)
    ]


def _partitions(brokers: Brokers, topic: str, *, to: int = 1) -> Plain:
    return sorted(
        brokers.described(topic, to=to)["partitions"], key=lambda partition: int(partition["partition_index"])
    )


def _seen(brokers: Brokers, topic: str) -> Plain:
    described = brokers.ask(DESCRIBE_TOPIC_PARTITIONS, topics=[{"name": topic}])["topics"]
    return {
        "metadata": _partitions(brokers, topic),
        "brokers": brokers.ask(METADATA, topics=[])["brokers"],
        "cluster": brokers.ask(DESCRIBE_CLUSTER)["brokers"],
        "described": described,
    }


def _elect(brokers: Brokers, topic: str, *, kind: int = 0) -> Plain:
    wanted = [{"topic": topic, "partitions": [0]}]
    return brokers.ask(ELECT_LEADERS, election_type=kind, topic_partitions=wanted, timeout=20_000)


def _end_of_epoch(brokers: Brokers, topic: str, epoch: int, *, to: int = 1) -> Plain:
    topics = [{"topic": topic, "partitions": [{"partition": 0, "leader_epoch": epoch}]}]
    return brokers.ask(OFFSET_FOR_LEADER_EPOCH, to=to, topics=topics)["topics"]
