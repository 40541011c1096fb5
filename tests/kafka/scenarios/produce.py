"""Produce: acknowledgements, codecs, timestamps and bad input."""

import time
from itertools import product
from typing import Final

from examples.broker.protocol.apis import METADATA, PRODUCE
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import CLOSED, Brokers
from tests.kafka.scenarios.record_batches import CODECS, TIME, batch, damaged, with_length
from tests.kafka.scenarios.scenario import scenario

ALL: Final = -1
_DAY: Final = 86_400_000

FAULTY: Final = {
    "wrong checksum": damaged(batch(b"value")),
    "cut off": batch(b"value")[:-3],
    "header cut off": batch(b"value")[:40],
    "length too small": with_length(batch(b"value"), 20),
    "length too large": with_length(batch(b"value"), 1000),
    "length negative": with_length(batch(b"value"), -1),
    "two batches": batch(b"one") + batch(b"two"),
    "bytes after the batch": batch(b"value") + b"more",
    "format 0": batch(b"value", magic=0),
    "format 1": batch(b"value", magic=1),
    "format 3": batch(b"value", magic=3),
    "more records than claimed": batch(b"one", b"two", record_count=1, last_offset_delta=0),
    "fewer records than claimed": batch(b"one", record_count=2, last_offset_delta=1),
    "wrong last offset": batch(b"one", b"two", last_offset_delta=5),
    "no record": batch(record_count=0, last_offset_delta=0),
    "negative count": batch(b"one", record_count=-1, last_offset_delta=0),
    "unknown codec": batch(b"value", attributes=5),
    "transactional": batch(b"value", attributes=0b1_0000),
    "control": batch(b"value", attributes=0b10_0000),
    "records are garbage": batch(b"value", payload=b"\xff" * 20),
    "compressed records are garbage": batch(b"value", codec="gzip", payload=b"garbage"),
    "fewer compressed records than claimed": batch(b"one", codec="gzip", record_count=2, last_offset_delta=1),
    "producer without sequence": batch(b"value", producer=(5, 0, -1)),
    "producer without epoch": batch(b"value", producer=(5, -1, 0)),
    "empty": b"",
}

ACCEPTED: Final = {
    "base offset set": batch(b"value", base_offset=500),
    "leader epoch set": batch(b"value", leader_epoch=7),
    "null value": batch(None),
    "no key": batch(b"value", key=None),
    "empty value": batch(b""),
    "headers": batch(b"value", headers=((b"one", b"1"), (b"two", None), (b"one", b"again"))),
    "equal times": batch(b"one", b"two", timestamps=(TIME, TIME)),
    "times go back": batch(b"one", b"two", timestamps=(TIME, TIME - 1000)),
    "max time too high": batch(b"value", max_timestamp=TIME + 5),
    "no time": batch(b"value", timestamps=(-1,)),
    "time zero": batch(b"value", timestamps=(0,)),
    "claims the time of the append": batch(b"value", attributes=0b1000),
    "has a delete horizon": batch(b"value", attributes=0b100_0000),
    "epoch and sequence without producer": batch(b"value", producer=(-1, 3, 4)),
}


@scenario(*product((0, 1, ALL), CODECS))
def acks_and_codec(brokers: Brokers, acks: int, codec: str) -> Plain:
    topic = brokers.topic()
    records = batch(b"one", b"two", b"three", codec=codec)
    if acks == 0:
        connection = brokers.connect()
        connection.send(PRODUCE, **_request(topic, records, acks))
        connection.send(METADATA, topics=[])
        # There is no answer to the first request, so what comes next belongs to the second one.
        connection._asked.popleft()
        answered: Plain = connection.receive() != CLOSED
    else:
        answered = brokers.produce(topic, records, acks=acks)
    return answered, brokers.fetch(topic), brokers.offset(topic, -1)


@scenario(2, -2, 127)
def unknown_acks(brokers: Brokers, acks: int) -> Plain:
    topic = brokers.topic()
    return brokers.produce(topic, batch(b"value"), acks=acks), brokers.offset(topic, -1)


@scenario(*FAULTY)
def faulty(brokers: Brokers, fault: str) -> Plain:
    topic = brokers.topic()
    return brokers.produce(topic, FAULTY[fault]), brokers.offset(topic, -1)


@scenario(*ACCEPTED)
def accepted(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic()
    return brokers.produce(topic, ACCEPTED[kind]), brokers.fetch(topic)


@scenario("wrong checksum", "unknown acks", "unknown topic")
def faulty_without_acks(brokers: Brokers, fault: str) -> Plain:
    """Only a closed connection can tell of a fault, since there is no answer."""
    topic = "nowhere" if fault == "unknown topic" else brokers.topic()
    records = damaged(batch(b"value")) if fault == "wrong checksum" else batch(b"value")
    connection = brokers.connect()
    connection.send(PRODUCE, **_request(topic, records, 2 if fault == "unknown acks" else 0))
    if fault == "unknown acks":
        return connection.receive()
    connection._asked.popleft()
    connection.send(METADATA, topics=[])
    answer = connection.receive()
    return answer if answer == CLOSED else "the connection stays open"


@scenario(0, 1, 5, -1)
def partition_of_two(brokers: Brokers, partition: int) -> Plain:
    topic = brokers.topic(replicas=((1,), (1,)))
    return brokers.produce(topic, batch(b"value"), partition=partition)


@scenario()
def unknown_topic(brokers: Brokers) -> Plain:
    return brokers.produce("nowhere", batch(b"value"))


@scenario("", "..", "ü", "a" * 250)
def topic_with_illegal_name(brokers: Brokers, name: str) -> Plain:
    return brokers.produce(name, batch(b"value"))


@scenario()
def internal_topic(brokers: Brokers) -> Plain:
    group = brokers.name
    return brokers.produce("__consumer_offsets", batch(b"value"), to=brokers.coordinator(group))["error_code"]


@scenario()
def to_a_follower(brokers: Brokers) -> Plain:
    topic = brokers.topic(replicas=((1, 2, 3),))
    return brokers.produce(topic, batch(b"value"), to=2)


@scenario()
def to_a_broker_without_a_replica(brokers: Brokers) -> Plain:
    return brokers.produce(brokers.topic(), batch(b"value"), to=2)


@scenario(*product((0, 1, 1000, -1), (1, 3)))
def timeout(brokers: Brokers, timeout: int, replicas: int) -> Plain:
    """An acknowledgement of three replicas may come before the timeout or after it, if that is short."""
    topic = brokers.topic(replicas=((1, 2, 3)[:replicas],))
    answer = brokers.produce(topic, batch(b"value"), timeout=timeout)
    timely = timeout >= 1000 or replicas == 1
    return answer if timely else answer["error_code"] in ("none", "request_timed_out")


@scenario(*product((ALL, 1), (1, 2), (2, 3)))
def min_insync_replicas(brokers: Brokers, acks: int, replicas: int, wanted: int) -> Plain:
    """A topic may want more replicas in sync than it has."""
    topic = brokers.topic(replicas=((1, 2, 3)[:replicas],), configs={"min.insync.replicas": str(wanted)})
    answer = brokers.produce(topic, batch(b"value"), acks=acks)
    return answer, brokers.offset(topic, -1) if acks == ALL else None


@scenario(-1, 0, 1)
def size_around_the_limit(brokers: Brokers, excess: int) -> Plain:
    data = batch(b"x" * 1000)
    topic = brokers.topic(configs={"max.message.bytes": str(len(data) - excess)})
    return brokers.produce(topic, data), brokers.offset(topic, -1)


@scenario(*CODECS)
def time_of_the_append(brokers: Brokers, codec: str) -> Plain:
    topic = brokers.topic(configs={"message.timestamp.type": "LogAppendTime"})
    answer = brokers.produce(topic, batch(b"one", b"two", timestamps=(TIME, TIME + 5), codec=codec))
    return answer, brokers.fetch(topic), brokers.offset(topic, TIME)


@scenario(*product(("CreateTime", "LogAppendTime"), (-400 * _DAY, -_DAY, 30 * 60_000, 2 * 3_600_000, _DAY)))
def time_beside_now(brokers: Brokers, kind: str, beside: int) -> Plain:
    topic = brokers.topic(configs={"message.timestamp.type": kind, "retention.ms": "-1"})
    at = round(time.time() * 1000) + beside
    answer = brokers.produce(topic, batch(b"value", timestamps=(at,)))
    return answer, brokers.offset(topic, -1)


@scenario()
def partition_named_twice(brokers: Brokers) -> Plain:
    topic = brokers.topic()
    entry = {"index": 0, "records": batch(b"value")}
    answer = brokers.ask(
        PRODUCE, acks=ALL, timeout=1000, topic_data=[{"name": topic, "partition_data": [entry, entry]}]
    )
    return answer, brokers.offset(topic, -1)


@scenario()
def topic_named_twice(brokers: Brokers) -> Plain:
    topic = brokers.topic(replicas=((1,), (1,)))
    entries = [
        {"name": topic, "partition_data": [{"index": index, "records": batch(b"value")}]} for index in (0, 1)
    ]
    answer = brokers.ask(PRODUCE, acks=ALL, timeout=1000, topic_data=entries)
    return sorted(
        (partition["index"], partition["error_code"], partition["base_offset"])
        for entry in answer["responses"]
        for partition in entry["partition_responses"]
    )


@scenario()
def one_partition_of_two_fails(brokers: Brokers) -> Plain:
    topic = brokers.topic(replicas=((1,), (1,)))
    entries = [{"index": 0, "records": damaged(batch(b"one"))}, {"index": 1, "records": batch(b"two")}]
    answer = brokers.ask(
        PRODUCE, acks=ALL, timeout=1000, topic_data=[{"name": topic, "partition_data": entries}]
    )
    (responses,) = answer["responses"]
    return sorted(responses["partition_responses"], key=lambda response: int(response["index"]))


@scenario()
def no_topic(brokers: Brokers) -> Plain:
    return brokers.ask(PRODUCE, acks=ALL, timeout=1000)


@scenario()
def transactional_id_without_transaction(brokers: Brokers) -> Plain:
    topic = brokers.topic()
    return brokers.produce(topic, batch(b"value"), transactional_id="mine")["error_code"]


@scenario(*range(3, 13))
def version(brokers: Brokers, version: int) -> Plain:
    topic = brokers.topic()
    answers = [
        brokers.produce(topic, data, version=version) for data in (batch(b"value"), damaged(batch(b"value")))
    ]
    return answers, brokers.offset(topic, -1)


@scenario(3, 6, 7)
def zstd_in_version(brokers: Brokers, version: int) -> Plain:
    return brokers.produce(brokers.topic(), batch(b"value", codec="zstd"), version=version)


@scenario(*CODECS)
def topic_with_its_own_codec(brokers: Brokers, codec: str) -> Plain:
    """What the topic stores is only known from the attributes: no two libraries compress alike."""
    topic = brokers.topic(configs={"compression.type": "uncompressed" if codec == "none" else codec})
    answer = brokers.produce(topic, batch(b"one", b"two"))
    return answer, [entry["attributes"] for entry in brokers.fetch(topic)["records"]]


def _request(topic: str, records: bytes, acks: int) -> dict[str, Plain]:
    entry = {"index": 0, "records": records}
    return {
        "acks": acks,
        "timeout": 1000,
        "topic_data": [{"name": topic, "partition_data": [entry]}],
    }
