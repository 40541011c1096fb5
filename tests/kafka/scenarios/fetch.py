"""Fetch: offsets, epochs, sizes, waits and sessions."""

import time
from itertools import product
from typing import Final

from examples.broker.protocol.apis import DELETE_RECORDS, FETCH
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers, read_batches
from tests.kafka.scenarios.record_batches import batch
from tests.kafka.scenarios.scenario import scenario

_FULL: Final = -1
_FIRST: Final = 0


@scenario(-2, -1, 0, 1, 2, 5, 6, 7, 1000)
def from_offset(brokers: Brokers, offset: int) -> Plain:
    return brokers.fetch(_filled(brokers), offset, max_wait=0)


@scenario(0, 2, 3, 4)
def from_offset_after_deletion(brokers: Brokers, offset: int) -> Plain:
    topic = _filled(brokers)
    entry = {"partition_index": 0, "offset": 3}
    brokers.ask(DELETE_RECORDS, timeout=10_000, topics=[{"name": topic, "partitions": [entry]}])
    return brokers.fetch(topic, offset)


@scenario(-1, 0, 1)
def empty_topic_from(brokers: Brokers, offset: int) -> Plain:
    return brokers.fetch(brokers.topic(), offset)


@scenario(-2, -1, 0, 1, 5)
def current_leader_epoch(brokers: Brokers, epoch: int) -> Plain:
    return brokers.fetch(_filled(brokers), leader_epoch=epoch)


@scenario(*product((-1, 0, 1), (0, 2, 6, 7)))
def last_fetched_epoch(brokers: Brokers, epoch: int, offset: int) -> Plain:
    return brokers.fetch(_filled(brokers), offset, last_fetched_epoch=epoch, leader_epoch=0)


@scenario(-1, 1, 5)
def partition(brokers: Brokers, partition: int) -> Plain:
    return brokers.fetch(_filled(brokers), partition=partition)


@scenario("nowhere", "", "ü", "..")
def topic_that_does_not_exist(brokers: Brokers, name: str) -> Plain:
    return brokers.fetch(name)


@scenario()
def from_a_broker_without_a_replica(brokers: Brokers) -> Plain:
    return brokers.fetch(_filled(brokers), to=2)


@scenario(4, 10, 11, 12)
def from_a_follower_in_version(brokers: Brokers, version: int) -> Plain:
    topic = brokers.topic(replicas=((1, 2, 3),))
    brokers.produce(topic, batch(b"value"))
    return brokers.fetch(topic, to=2, version=version)["error_code"]


@scenario(*range(4, 13))
def version(brokers: Brokers, version: int) -> Plain:
    topic = _filled(brokers)
    return [brokers.fetch(topic, offset, version=version) for offset in (0, 1000)]


@scenario(0, 1)
def isolation_level(brokers: Brokers, level: int) -> Plain:
    return brokers.fetch(_filled(brokers), isolation_level=level)


@scenario(0, 1, 80, 1 << 20, -1)
def partition_max_bytes(brokers: Brokers, most: int) -> Plain:
    topic = _filled(brokers)
    return brokers.fetch(topic, partition_max_bytes=most), brokers.fetch(topic, 2, partition_max_bytes=most)


@scenario(0, 1, 80, 200, -1)
def max_bytes(brokers: Brokers, most: int) -> Plain:
    """The first batch comes whatever its size. The second partition has what is left."""
    topic = _filled(brokers, partitions=2)
    return read_batches(brokers.ask(FETCH, **_request(topic, (0, 0), (1, 0)) | {"max_bytes": most}))


@scenario(*product((0, 1, 300), (0, 200)))
def min_bytes_and_max_wait(brokers: Brokers, least: int, wait: int) -> Plain:
    """The log has fewer bytes than 300 after the offset, so only then is there a wait."""
    topic = _filled(brokers)
    began = time.monotonic()
    answer = brokers.fetch(topic, 5, min_bytes=least, max_wait=wait)
    return answer, time.monotonic() - began >= wait / 1000


@scenario(0, 200)
def wait_at_the_end(brokers: Brokers, wait: int) -> Plain:
    topic = _filled(brokers)
    began = time.monotonic()
    answer = brokers.fetch(topic, 6, max_wait=wait)
    return answer, time.monotonic() - began >= wait / 1000


@scenario("unknown", "out of range")
def a_fault_does_not_wait(brokers: Brokers, fault: str) -> Plain:
    topic = _filled(brokers)
    began = time.monotonic()
    partition, offset = (5, 0) if fault == "unknown" else (0, 1000)
    answer = brokers.fetch(topic, offset, partition=partition, max_wait=20_000, min_bytes=1000)
    return answer, time.monotonic() - began < 10


@scenario()
def a_record_ends_the_wait(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    reader = brokers.connect()
    began = time.monotonic()
    reader.send(FETCH, **_request(topic, (0, 6)) | {"max_wait": 20_000})
    brokers.produce(topic, batch(b"new"))
    return read_batches(reader.receive()), time.monotonic() - began < 10


@scenario()
def no_topic(brokers: Brokers) -> Plain:
    return brokers.ask(FETCH, min_bytes=1, max_wait=0)


@scenario()
def partition_named_twice(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    answer = read_batches(brokers.ask(FETCH, **_request(topic, (0, 0), (0, 2))))
    return [
        (partition["partition_index"], partition["error_code"])
        for entry in answer["responses"]
        for partition in entry["partitions"]
    ]


# Sessions


@scenario()
def session_without_news(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    opened = _session(brokers, _request(topic, (0, 6)), 0, _FIRST)
    return opened, _session(brokers, _request(topic), opened["session_id"], 1)


@scenario()
def session_with_news(brokers: Brokers) -> Plain:
    topic = _filled(brokers, partitions=2)
    opened = _session(brokers, _request(topic, (0, 6), (1, 6)), 0, _FIRST)
    brokers.produce(topic, batch(b"new"), partition=1)
    answers = [
        _session(brokers, _request(topic), opened["session_id"], 1),
        _session(brokers, _request(topic, (1, 7)), opened["session_id"], 2),
        _session(brokers, _request(topic), opened["session_id"], 3),
    ]
    return opened, answers


@scenario()
def session_reads_again_what_was_not_acknowledged(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    opened = _session(brokers, _request(topic, (0, 0)), 0, _FIRST)
    return opened, _session(brokers, _request(topic), opened["session_id"], 1)


@scenario(0, 2, 5, -1)
def session_epoch_after_the_first(brokers: Brokers, epoch: int) -> Plain:
    topic = _filled(brokers)
    opened = _session(brokers, _request(topic, (0, 6)), 0, _FIRST)
    return (
        _session(brokers, _request(topic, (0, 6)), opened["session_id"], epoch),
        _session(brokers, _request(topic), opened["session_id"], 1),
    )


@scenario(1, -1, 0)
def session_that_does_not_exist(brokers: Brokers, epoch: int) -> Plain:
    return _session(brokers, _request(_filled(brokers), (0, 6)), 12345, epoch)


@scenario()
def session_zero_with_an_epoch(brokers: Brokers) -> Plain:
    return _session(brokers, _request(_filled(brokers), (0, 6)), 0, 1)


@scenario()
def session_forgets_a_partition(brokers: Brokers) -> Plain:
    topic = _filled(brokers, partitions=2)
    opened = _session(brokers, _request(topic, (0, 6), (1, 6)), 0, _FIRST)
    for index in (0, 1):
        brokers.produce(topic, batch(b"new"), partition=index)
    forgetting = _request(topic) | {"forgotten_topics_data": [{"topic": topic, "partitions": [0]}]}
    return _session(brokers, forgetting, opened["session_id"], 1)


@scenario()
def session_gets_one_more_partition(brokers: Brokers) -> Plain:
    topic = _filled(brokers, partitions=2)
    opened = _session(brokers, _request(topic, (0, 6)), 0, _FIRST)
    return _session(brokers, _request(topic, (1, 0)), opened["session_id"], 1)


@scenario()
def session_repeats_an_error(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    opened = _session(brokers, _request(topic, (7, 0)), 0, _FIRST)
    return opened, [_session(brokers, _request(topic), opened["session_id"], epoch) for epoch in (1, 2)]


@scenario()
def session_is_closed(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    opened = _session(brokers, _request(topic, (0, 6)), 0, _FIRST)
    closed = _session(brokers, _request(topic, (0, 6)), opened["session_id"], _FULL)
    return closed, _session(brokers, _request(topic), opened["session_id"], 1)


@scenario()
def session_is_opened_again(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    first = _session(brokers, _request(topic, (0, 6)), 0, _FIRST)
    second = _session(brokers, _request(topic, (0, 6)), first["session_id"], _FIRST)
    return (
        first["session_id"] != second["session_id"],
        _session(brokers, _request(topic), first["session_id"], 1),
        _session(brokers, _request(topic), second["session_id"], 1),
    )


@scenario()
def session_without_partitions(brokers: Brokers) -> Plain:
    opened = _session(brokers, _request(_filled(brokers)), 0, _FIRST)
    return opened, _session(brokers, {"min_bytes": 1}, opened["session_id"], 1)


@scenario()
def session_whose_records_are_deleted(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    opened = _session(brokers, _request(topic, (0, 6)), 0, _FIRST)
    entry = {"partition_index": 0, "offset": 2}
    brokers.ask(DELETE_RECORDS, timeout=10_000, topics=[{"name": topic, "partitions": [entry]}])
    return opened, _session(brokers, _request(topic), opened["session_id"], 1)


def _filled(brokers: Brokers, partitions: int = 1) -> str:
    """Return a topic with three batches, of two, three and one records, in each partition."""
    topic = brokers.topic(replicas=((1,),) * partitions)
    for partition in range(partitions):
        for data in (batch(b"1", b"2"), batch(b"3", b"4", b"5"), batch(b"6")):
            assert brokers.produce(topic, data, partition=partition)["error_code"] == "none"
    return topic


def _request(topic: str, *wanted: tuple[int, int]) -> dict[str, Plain]:
    """Return a Fetch of partitions from offsets on."""
    entries = [
        {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        for partition, offset in wanted
    ]
    return {
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "topics": [{"topic": topic, "partitions": entries}] if entries else [],
    }


def _session(brokers: Brokers, request: dict[str, Plain], session_id: int, epoch: int) -> Plain:
    return read_batches(brokers.ask(FETCH, **request, session_id=session_id, session_epoch=epoch))
