"""Idempotent producers: their ids, epochs and sequences, and faults in them."""

from typing import Final

from examples.broker.protocol.apis import DELETE_RECORDS, DESCRIBE_PRODUCERS, INIT_PRODUCER_ID
from tests.examples.broker.live.live_cluster import until
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.record_batches import batch
from tests.kafka.scenarios.scenario import scenario

_LAST_SEQUENCE: Final = 2**31 - 1

# The batches that a producer sends: epoch, first sequence, number of records.
SENT: Final = {
    "in order": ((0, 0, 2), (0, 2, 1), (0, 3, 3)),
    "last one again": ((0, 0, 2), (0, 2, 1), (0, 2, 1)),
    "first of five again": (*((0, number, 1) for number in range(5)), (0, 0, 1)),
    "first of six again": (*((0, number, 1) for number in range(6)), (0, 0, 1)),
    "again with more records": ((0, 0, 2), (0, 0, 3)),
    "again with fewer records": ((0, 0, 3), (0, 0, 2)),
    "a gap": ((0, 0, 1), (0, 2, 1)),
    "goes back": ((0, 0, 3), (0, 3, 1), (0, 1, 1)),
    "goes on after a gap": ((0, 0, 1), (0, 2, 1), (0, 1, 1)),
    "does not begin at 0": ((0, 5, 1),),
    "next epoch": ((0, 0, 1), (1, 0, 1), (1, 1, 1)),
    "skips epochs": ((0, 0, 1), (7, 0, 1)),
    "next epoch does not begin at 0": ((0, 0, 1), (1, 1, 1)),
    "older epoch": ((3, 0, 1), (2, 0, 1)),
    "older epoch after a fault": ((3, 0, 1), (4, 9, 1), (3, 1, 1)),
    "first batch again in next epoch": ((0, 0, 1), (1, 0, 1), (0, 0, 1)),
    "begins with a later epoch": ((5, 0, 1), (5, 1, 1)),
}


@scenario(*SENT)
def sent(brokers: Brokers, kind: str) -> Plain:
    topic, producer = brokers.topic(), _new_id(brokers)
    answers = [
        brokers.produce(topic, batch(*[b"value"] * count, producer=(producer, epoch, sequence)))
        for epoch, sequence, count in SENT[kind]
    ]
    return answers, brokers.fetch(topic), _described(brokers, topic)


@scenario()
def sequence_starts_over(brokers: Brokers) -> Plain:
    """The last sequence is followed by 0. Nobody can send two billion records to get there."""
    topic, producer = brokers.topic(), _new_id(brokers)
    before = brokers.produce(topic, batch(b"value"))
    deleted = _delete_records(brokers, topic, 1)
    answers = [
        brokers.produce(topic, batch(b"one", b"two", producer=(producer, 0, sequence)))
        for sequence in (_LAST_SEQUENCE - 1, 0)
    ]
    return before, deleted, answers


@scenario()
def sequence_starts_over_inside_a_batch(brokers: Brokers) -> Plain:
    topic, producer = brokers.topic(), _new_id(brokers)
    brokers.produce(topic, batch(b"value"))
    _delete_records(brokers, topic, 1)
    answers = [
        brokers.produce(topic, batch(b"one", b"two", b"three", producer=(producer, 0, sequence)))
        for sequence in (_LAST_SEQUENCE, 2)
    ]
    return answers, _described(brokers, topic)


@scenario()
def records_of_the_producer_are_deleted(brokers: Brokers) -> Plain:
    topic, producer = brokers.topic(), _new_id(brokers)
    for sequence in range(3):
        brokers.produce(topic, batch(b"value", producer=(producer, 0, sequence)))
    deleted = _delete_records(brokers, topic, 3)
    answers = [brokers.produce(topic, batch(b"value", producer=(producer, 0, entry))) for entry in (3, 4)]
    return deleted, answers


@scenario()
def two_producers(brokers: Brokers) -> Plain:
    topic, ids = brokers.topic(), [_new_id(brokers) for _ in range(2)]
    answers = [
        brokers.produce(topic, batch(b"value", producer=(producer, 0, sequence)))
        for sequence in range(2)
        for producer in ids
    ]
    return answers, _described(brokers, topic)


@scenario()
def retry_with_the_time_of_the_append(brokers: Brokers) -> Plain:
    topic = brokers.topic(configs={"message.timestamp.type": "LogAppendTime"})
    data = batch(b"value", producer=(_new_id(brokers), 0, 0))
    return [brokers.produce(topic, data) for _ in range(2)]


@scenario(0, 1, -1)
def retry_with_acks(brokers: Brokers, acks: int) -> Plain:
    topic = brokers.topic()
    data = batch(b"value", producer=(_new_id(brokers), 0, 0))
    brokers.produce(topic, data)
    answer = None if acks == 0 else brokers.produce(topic, data, acks=acks)
    return answer, brokers.offset(topic, -1)


@scenario(-1, 0, 5)
def id_with_epoch(brokers: Brokers, epoch: int) -> Plain:
    """A producer that has an id asks for its next epoch."""
    return brokers.ask(
        INIT_PRODUCER_ID, producer_id=_new_id(brokers), producer_epoch=epoch, transaction_timeout=1000
    )


@scenario()
def epoch_without_id(brokers: Brokers) -> Plain:
    return brokers.ask(INIT_PRODUCER_ID, producer_epoch=3, transaction_timeout=1000)


@scenario(*range(5))
def new_id_in_version(brokers: Brokers, version: int) -> Plain:
    return brokers.ask(INIT_PRODUCER_ID, version, transactional_id=None, transaction_timeout=0)


@scenario()
def every_broker_gives_other_ids(brokers: Brokers) -> Plain:
    ids = [_new_id(brokers, to=broker) for broker in (1, 2, 3) for _ in range(2)]
    return len(set(ids))


@scenario("unknown topic", "unknown partition", "no producer", "no replica", "follower")
def described(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic(replicas=((1, 2),))
    broker = {"no replica": 3, "follower": 2}.get(kind, 1)
    partition = 4 if kind == "unknown partition" else 0
    name = "nowhere" if kind == "unknown topic" else topic
    return brokers.ask(
        DESCRIBE_PRODUCERS, to=broker, topics=[{"name": name, "partition_indexes": [partition]}]
    )


def _new_id(brokers: Brokers, *, to: int = 1) -> int:
    # -1 until a broker has reserved its first ids.
    return (
        until(lambda: int(brokers.ask(INIT_PRODUCER_ID, to=to, transaction_timeout=1000)["producer_id"]) + 1)
        - 1
    )


def _described(brokers: Brokers, topic: str) -> Plain:
    answer = brokers.ask(DESCRIBE_PRODUCERS, topics=[{"name": topic, "partition_indexes": [0]}])
    partition = answer["topics"][0]["partitions"][0]
    partition["active_producers"].sort(key=lambda producer: int(producer["producer_id"]))
    return partition


def _delete_records(brokers: Brokers, topic: str, offset: int) -> Plain:
    entry = {"partition_index": 0, "offset": offset}
    answer = brokers.ask(DELETE_RECORDS, timeout=10_000, topics=[{"name": topic, "partitions": [entry]}])
    return answer["topics"][0]["partitions"][0]
