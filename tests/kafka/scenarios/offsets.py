"""ListOffsets and OffsetForLeaderEpoch: offsets by time and by leader epoch."""

from itertools import product
from typing import Final

from examples.broker.protocol.apis import DELETE_RECORDS, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.record_batches import CODECS, TIME, batch
from tests.kafka.scenarios.scenario import scenario

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
SPECIAL: Final = (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED)


@scenario(*SPECIAL, -6, -100)
def special(brokers: Brokers, timestamp: int) -> Plain:
    return brokers.offset(_filled(brokers), timestamp)


@scenario(*SPECIAL, 0, TIME)
def empty_log(brokers: Brokers, timestamp: int) -> Plain:
    return brokers.offset(brokers.topic(), timestamp)


@scenario(0, TIME - 1, TIME, TIME + 1, TIME + 3, TIME + 9, TIME + 10, TIME + 11)
def at_time(brokers: Brokers, timestamp: int) -> Plain:
    return brokers.offset(_filled(brokers), timestamp)


@scenario(*CODECS)
def inside_a_batch_of(brokers: Brokers, codec: str) -> Plain:
    topic = brokers.topic()
    times = (TIME, TIME + 5, TIME + 10)
    brokers.produce(topic, batch(b"1", b"2", b"3", timestamps=times, codec=codec))
    return [brokers.offset(topic, timestamp) for timestamp in (TIME + 1, TIME + 6, MAX_TIMESTAMP)]


@scenario(TIME - 100, TIME - 50, TIME + 1, MAX_TIMESTAMP)
def times_go_back(brokers: Brokers, timestamp: int) -> Plain:
    topic = brokers.topic()
    for times in ((TIME, TIME + 50), (TIME - 100, TIME - 50), (TIME + 50, TIME - 10)):
        brokers.produce(topic, batch(b"1", b"2", timestamps=times))
    return brokers.offset(topic, timestamp)


@scenario(MAX_TIMESTAMP, TIME)
def without_times(brokers: Brokers, timestamp: int) -> Plain:
    topic = brokers.topic()
    brokers.produce(topic, batch(b"1", timestamps=(-1,)))
    return brokers.offset(topic, timestamp)


@scenario(TIME, MAX_TIMESTAMP, EARLIEST)
def time_of_the_append(brokers: Brokers, timestamp: int) -> Plain:
    topic = brokers.topic(configs={"message.timestamp.type": "LogAppendTime"})
    brokers.produce(topic, batch(b"1", b"2"))
    return brokers.offset(topic, timestamp)


@scenario(*SPECIAL, TIME)
def after_deletion(brokers: Brokers, timestamp: int) -> Plain:
    topic = _filled(brokers)
    _delete(brokers, topic, 3)
    return brokers.offset(topic, timestamp)


@scenario(EARLIEST, MAX_TIMESTAMP, TIME)
def after_deletion_inside_a_batch(brokers: Brokers, timestamp: int) -> Plain:
    topic = _filled(brokers)
    _delete(brokers, topic, 1)
    return brokers.offset(topic, timestamp)


@scenario(*SPECIAL, TIME)
def all_deleted(brokers: Brokers, timestamp: int) -> Plain:
    topic = _filled(brokers)
    _delete(brokers, topic, 6)
    return brokers.offset(topic, timestamp)


@scenario(*product((LATEST, TIME), (0, 1)))
def isolation_level(brokers: Brokers, timestamp: int, level: int) -> Plain:
    return brokers.offset(_filled(brokers), timestamp, isolation_level=level)


@scenario(*product((-1, 0, 1), (LATEST, EARLIEST)))
def current_leader_epoch(brokers: Brokers, epoch: int, timestamp: int) -> Plain:
    return brokers.offset(_filled(brokers), timestamp, leader_epoch=epoch)


@scenario(-1, 1)
def partition(brokers: Brokers, partition: int) -> Plain:
    return brokers.offset(_filled(brokers), LATEST, partition)


@scenario("nowhere", "", "ü")
def topic_that_does_not_exist(brokers: Brokers, name: str) -> Plain:
    return brokers.offset(name, LATEST)


@scenario("follower", "no replica")
def from_a(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic(replicas=((1, 2),))
    return brokers.offset(topic, LATEST, to=2 if kind == "follower" else 3)


@scenario(*range(1, 10))
def version(brokers: Brokers, version: int) -> Plain:
    topic = _filled(brokers)
    answers = [
        brokers.offset(topic, timestamp, version=version) for timestamp in (LATEST, EARLIEST, TIME + 2)
    ]
    return answers, brokers.offset("nowhere", LATEST, version=version)


@scenario(*product((MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED), (6, 7, 8, 9)))
def special_in_version(brokers: Brokers, timestamp: int, version: int) -> Plain:
    return brokers.offset(_filled(brokers), timestamp, version=version)


@scenario()
def partition_named_twice(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    wanted = [{"partition_index": 0, "timestamp": timestamp} for timestamp in (LATEST, EARLIEST)]
    return brokers.ask(LIST_OFFSETS, replica_id=-1, topics=[{"name": topic, "partitions": wanted}])


@scenario(-1, 0, 1, 5)
def end_of_epoch(brokers: Brokers, epoch: int) -> Plain:
    return _end_of_epoch(brokers, _filled(brokers), epoch)


@scenario(0, 1)
def end_of_epoch_of_an_empty_log(brokers: Brokers, epoch: int) -> Plain:
    return _end_of_epoch(brokers, brokers.topic(), epoch)


@scenario(0, 1, -1)
def end_of_epoch_for_leader_epoch(brokers: Brokers, current: int) -> Plain:
    return _end_of_epoch(brokers, _filled(brokers), 0, current_leader_epoch=current)


@scenario("nowhere", "ü")
def end_of_epoch_of_topic(brokers: Brokers, name: str) -> Plain:
    return _end_of_epoch(brokers, name, 0)


@scenario("follower", "no replica")
def end_of_epoch_from_a(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic(replicas=((1, 2),))
    return _end_of_epoch(brokers, topic, 0, to=2 if kind == "follower" else 3)


@scenario(2, 3, 4)
def end_of_epoch_in_version(brokers: Brokers, version: int) -> Plain:
    return _end_of_epoch(brokers, _filled(brokers), 0, version=version)


def _filled(brokers: Brokers) -> str:
    """Return a topic whose records have times up to 10 ms after ``TIME``."""
    topic = brokers.topic()
    for times in ((0, 1), (2, 3, 9), (10,)):
        values = (b"value",) * len(times)
        brokers.produce(topic, batch(*values, timestamps=[TIME + time for time in times]))
    return topic


def _delete(brokers: Brokers, topic: str, before: int) -> None:
    entry = {"partition_index": 0, "offset": before}
    answer = brokers.ask(DELETE_RECORDS, timeout=10_000, topics=[{"name": topic, "partitions": [entry]}])
    assert answer["topics"][0]["partitions"][0]["error_code"] == "none"


def _end_of_epoch(
    brokers: Brokers, topic: str, epoch: int, *, to: int = 1, version: int | None = None, **values: Plain
) -> Plain:
    entry = {"partition": 0, "leader_epoch": epoch} | values
    answer = brokers.ask(
        OFFSET_FOR_LEADER_EPOCH, version, to=to, topics=[{"topic": topic, "partitions": [entry]}]
    )
    return answer["topics"][0]["partitions"][0]
