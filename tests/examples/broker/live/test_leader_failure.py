"""The leader fails under load, comes back and leads again: no acknowledged record is lost, repeated or moved.

The number of a round is its seed. ``BROKER_FAILURE_ROUNDS`` in the environment sets the number of long
rounds.
"""

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from random import Random
from threading import Event

import pytest
from confluent_kafka import Consumer, ElectionType, KafkaError
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.broker.cluster import Cluster
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.idempotent_writers import (
    AiokafkaWriter,
    ConfluentWriter,
    KafkaPythonWriter,
    Writer,
)
from tests.examples.broker.live.live_cluster import PATIENCE, LiveCluster, until

pytestmark = pytest.mark.real_time

# Each client has its turn in these.
SLOW_ROUNDS = 5
LONG_ROUNDS = int(os.environ.get("BROKER_FAILURE_ROUNDS", "20"))
FAST = replace(
    CONFIG,
    defaults=replace(CONFIG.defaults, broker_session_timeout=0.3),
    broker=replace(
        CONFIG.broker, replica_lag_time_max=0.5, replica_fetch_wait_max=0.1, broker_heartbeat_interval=0.05
    ),
)
# Seconds between two records.
PACE = 0.001
# How many are acknowledged before the fault at most, and written after the election.
BEFORE = 100
AFTER = 30


class Fault(Enum):
    KILL = "kill"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Round:
    """What the seed has decided: the leader of ``target`` fails once ``before`` records are
    acknowledged.

    ``jitter`` is how many seconds later: time in which the ``severed`` of the two followers get nothing, so
    that there is something to cut. ``down`` is for how many it is gone: its session may last longer.
    """

    seed: int
    writer: type[Writer]
    partitions: int
    min_insync_replicas: int
    target: int
    fault: Fault
    severed: tuple[int, ...]
    before: int
    jitter: float
    down: float

    @classmethod
    def of(cls, seed: int) -> "Round":
        random = Random(seed)
        partitions = random.randint(1, 6)
        return cls(
            seed,
            # Each client has its turn, however few rounds there are; the others are slower to start.
            (ConfluentWriter, ConfluentWriter, KafkaPythonWriter, ConfluentWriter, AiokafkaWriter)[seed % 5],
            partitions,
            random.choice((1, 2)),
            random.randrange(partitions),
            random.choice((Fault.KILL, Fault.KILL, Fault.PAUSE)),
            random.choice(((), (0,), (1,), (0, 1))),
            # Often among the first, when no broker knows the producer yet.
            random.choice((0, 1, random.randint(1, BEFORE))),
            random.uniform(0.0, 0.02),
            random.uniform(0.0, 0.6),
        )

    @property
    def topic(self) -> str:
        return f"round-{self.seed}"


@dataclass(frozen=True, slots=True)
class Stored:
    """A batch as it lies in a log."""

    base_offset: int
    leader_epoch: int
    data: bytes


@pytest.fixture(scope="module")
def fast_cluster() -> Iterator[LiveCluster]:
    with LiveCluster.running(FAST) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(fast_cluster: LiveCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": fast_cluster.bootstrap_servers, "log_level": 0})


@pytest.mark.parametrize(
    "seed",
    [
        *range(SLOW_ROUNDS),
        *(pytest.param(seed, marks=pytest.mark.long) for seed in range(SLOW_ROUNDS, LONG_ROUNDS)),
    ],
)
def test_acknowledged_records_are_stored_once_in_order_on_all_replicas(
    fast_cluster: LiveCluster, admin: AdminClient, seed: int
) -> None:
    play = Round.of(seed)
    create_topic(admin, play)
    with (
        play.writer.running(fast_cluster.bootstrap_servers, play.topic) as writer,
        ThreadPoolExecutor(1) as executor,
    ):
        harm = executor.submit(fail_and_recover, fast_cluster, admin, writer, play)
        while not harm.done():
            writer.send(writer.sent % play.partitions, writer.sent)
            wait([harm], PACE)
        harm.result()
        writer.flush()
    faults = [
        *writer.failed,
        *find_faults(read_all(fast_cluster.bootstrap_servers, play), writer),
        *find_differences(fast_cluster, play),
    ]
    assert not faults, "\n".join([f"{play} after {writer.sent} records:", *faults[:20]])
    delete_topic(admin, play)


def create_topic(admin: AdminClient, play: Round) -> None:
    config = {"min.insync.replicas": str(play.min_insync_replicas)}
    topic = NewTopic(play.topic, play.partitions, 3, config=config)
    admin.create_topics([topic])[play.topic].result(PATIENCE)


def delete_topic(admin: AdminClient, play: Round) -> None:
    admin.delete_topics([play.topic])[play.topic].result(PATIENCE)


def fail_and_recover(cluster: LiveCluster, admin: AdminClient, writer: Writer, play: Round) -> None:
    """While the load goes on: the fault, the return, and a preferred election once all are in sync again."""
    # What the cluster knows at the end of the last round may still be about to change: start in good order.
    until_all_are_in_sync(cluster, play)
    until(lambda: len(writer) >= play.before or writer.failed)
    leader = cluster.leader_of(play.topic, play.target)
    followers = sorted({1, 2, 3} - {leader})
    severed = [followers[index] for index in play.severed]
    for broker_id in severed:
        cluster.pause_follower(broker_id)
    pause(play.jitter)
    fail, recover = (
        (cluster.kill, cluster.start) if play.fault is Fault.KILL else (cluster.pause, cluster.resume)
    )
    fail(leader)
    for broker_id in severed:
        cluster.resume_follower(broker_id)
    pause(play.down)
    recover(leader)
    until(lambda: leads_as_preferred(cluster, admin, play), explain=lambda: (play, states(cluster, play)))
    written = writer.sent
    until(lambda: writer.sent >= written + AFTER)


def pause(seconds: float) -> None:
    """The seed's own time, which nobody signals the end of."""
    Event().wait(seconds)


def states(cluster: LiveCluster, play: Round) -> object:
    return cluster.look(lambda c: c.controller.image.topics[play.topic].partitions)


def until_all_are_in_sync(cluster: LiveCluster, play: Round) -> None:
    cluster.until(lambda c: all_in_sync(c, play))


def all_in_sync(cluster: Cluster, play: Round) -> bool:
    partitions = cluster.controller.image.topics[play.topic].partitions
    return all(len(state.in_sync) == len(state.replicas) for state in partitions)


def leads_as_preferred(cluster: LiveCluster, admin: AdminClient, play: Round) -> bool:
    until_all_are_in_sync(cluster, play)
    partitions = [ClientTopicPartition(play.topic, index) for index in range(play.partitions)]
    admin.elect_leaders(ElectionType.PREFERRED, partitions).result(PATIENCE)
    return cluster.look(
        lambda c: all(
            state.leader == state.replicas[0] for state in c.controller.image.topics[play.topic].partitions
        )
    )


def read_all(bootstrap_servers: str, play: Round) -> dict[int, dict[int, int]]:
    """What a consumer finds, by partition and offset."""
    found: dict[int, dict[int, int]] = {index: {} for index in range(play.partitions)}
    ended: set[int] = set()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([ClientTopicPartition(play.topic, index, 0) for index in found])
        while len(ended) < play.partitions:
            message = consumer.poll(PATIENCE)
            assert message is not None, f"{play}: no end after {found}"
            error, partition, offset, value = (
                message.error(),
                message.partition(),
                message.offset(),
                message.value(),
            )
            assert partition is not None, f"{play}: {error}"
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, f"{play}: {error}"
                ended.add(partition)
            else:
                assert offset is not None
                assert value is not None
                found[partition][offset] = int(value)
    finally:
        consumer.close()
    return found


def find_faults(found: dict[int, dict[int, int]], writer: Writer) -> Iterator[str]:
    for partition, records in found.items():
        at = {number: offset for offset, number in records.items()}
        for number, offset in writer.acknowledged.get(partition, {}).items():
            # Of a batch that must have got in, as the next one did, librdkafka does not know where it lies.
            if number not in at or offset not in (None, at[number]):
                yield f"partition {partition}: {number}, acknowledged at {offset}, is at {at.get(number)}"
        stored = list(records.values())
        yield from (
            f"partition {partition}: {number} is stored {times} times"
            for number, times in Counter(stored).items()
            if times > 1
        )
        yield from (
            f"partition {partition}: {later} comes after {earlier}"
            for earlier, later in pairwise(stored)
            if later < earlier
        )
        if list(records) != list(range(len(records))):
            yield f"partition {partition}: there are gaps between the offsets {list(records)}"


def find_differences(cluster: LiveCluster, play: Round) -> list[str]:
    """Where a replica's log is not the leader's, once all is replicated."""
    cluster.until(
        lambda c: all(is_replicated(c, TopicPartition(play.topic, i)) for i in range(play.partitions))
    )
    differences = []
    for index in range(play.partitions):
        logs = cluster.look(lambda c, i=index: stored_logs(c, TopicPartition(play.topic, i)))  # type: ignore[misc]  # a default binds the index
        leader = cluster.leader_of(play.topic, index)
        for broker_id, log in logs.items():
            if log != logs[leader]:
                differences.append(
                    f"partition {index}: broker {broker_id} stores {len(log)} batches, of which "
                    f"{len(set(log) - set(logs[leader]))} are not the leader's {len(logs[leader])}"
                )
    return differences


def is_replicated(cluster: Cluster, topic_partition: TopicPartition) -> bool:
    replicas = [node.replicas.partitions.get(topic_partition) for node in cluster.nodes.values()]
    ends = {replica.log.log_end_offset for replica in replicas if replica is not None}
    marks = {replica.high_watermark for replica in replicas if replica is not None}
    return len(ends) == 1 and marks == ends


def stored_logs(cluster: Cluster, topic_partition: TopicPartition) -> dict[int, list[Stored]]:
    """By broker."""
    return {
        broker_id: [
            Stored(batch.base_offset, batch.leader_epoch, batch.data) for batch in replica.log.batches()
        ]
        for broker_id, node in cluster.nodes.items()
        if (replica := node.replicas.partitions.get(topic_partition)) is not None
    }
