"""The leader fails under load, comes back and leads again: no acknowledged record is lost, repeated or moved.

A client that begins a new producer epoch may repeat what is not acknowledged; ``stored_once`` says when.
The number of a round is its seed. ``BROKER_FAILURE_ROUNDS`` in the environment sets the number of long
rounds.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from threading import Event

import pytest
from confluent_kafka import Consumer, ElectionType, KafkaError
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.broker.cluster import Cluster
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.idempotent_writers import (
    AiokafkaWriter,
    ConfluentWriter,
    KafkaPythonWriter,
    Writer,
)
from tests.examples.broker.live.live_cluster import PATIENCE, LiveCluster, until
from tests.examples.broker.live.refusals import Refusals
from tests.examples.broker.live.stored_once import find_differences, find_faults

pytestmark = pytest.mark.real_time

# These rounds include each client.
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
# The most records that are acknowledged before the fault, and the records written after the election.
BEFORE = 100
AFTER = 30


class Fault(Enum):
    KILL = "kill"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Round:
    """The decisions of a seed: the leader of ``target`` fails after ``before`` acknowledged records.

    It fails ``jitter`` seconds later. Meanwhile the ``severed`` followers replicate nothing, so that the old
    leader has records to truncate. It is down for ``down`` seconds, which may be shorter than its session.
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
            # Five rounds include each client. The others start more slowly than librdkafka.
            (ConfluentWriter, ConfluentWriter, KafkaPythonWriter, ConfluentWriter, AiokafkaWriter)[seed % 5],
            partitions,
            random.choice((1, 2)),
            random.randrange(partitions),
            random.choice((Fault.KILL, Fault.KILL, Fault.PAUSE)),
            random.choice(((), (0,), (1,), (0, 1))),
            # Often 0 or 1, when no broker knows the producer yet.
            random.choice((0, 1, random.randint(1, BEFORE))),
            random.uniform(0.0, 0.02),
            random.uniform(0.0, 0.6),
        )

    @property
    def topic(self) -> str:
        return f"round-{self.seed}"


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
    round_ = Round.of(seed)
    create_topic(admin, round_)
    with (
        Refusals.observed() as refusals,
        round_.writer.running(fast_cluster.bootstrap_servers, round_.topic) as writer,
        ThreadPoolExecutor(1) as executor,
    ):
        harm = executor.submit(fail_and_recover, fast_cluster, admin, writer, round_)
        while not harm.done():
            writer.send(writer.sent % round_.partitions, writer.sent)
            wait([harm], PACE)
        harm.result()
        writer.flush()
    stored = read_all(fast_cluster.bootstrap_servers, round_)
    fast_cluster.until_replicated(round_.topic, round_.partitions)
    faults = [*writer.failed, *refusals.unfounded]
    for partition, numbers in stored.items():
        logs = fast_cluster.stored_logs(round_.topic, partition)
        leader = fast_cluster.leader_of(round_.topic, partition)
        found = find_faults(
            numbers,
            logs[leader],
            writer.acknowledged.get(partition, {}),
            begins_new_epochs=writer.begins_new_epochs and bool(refusals.gaps),
        )
        faults += (f"partition {partition}: {fault}" for fault in [*found, *find_differences(logs, leader)])
    assert not faults, "\n".join([f"{round_} after {writer.sent} records:", *faults[:20]])
    delete_topic(admin, round_)


def create_topic(admin: AdminClient, round_: Round) -> None:
    config = {"min.insync.replicas": str(round_.min_insync_replicas)}
    topic = NewTopic(round_.topic, round_.partitions, 3, config=config)
    admin.create_topics([topic])[round_.topic].result(PATIENCE)


def delete_topic(admin: AdminClient, round_: Round) -> None:
    admin.delete_topics([round_.topic])[round_.topic].result(PATIENCE)


def fail_and_recover(cluster: LiveCluster, admin: AdminClient, writer: Writer, round_: Round) -> None:
    """Inject the fault under load, end it, and elect the preferred leaders once all replicas are in sync."""
    # The previous round may still change the metadata, so wait until all replicas are in sync.
    until_all_are_in_sync(cluster, round_)
    until(lambda: len(writer) >= round_.before or writer.failed)
    leader = cluster.leader_of(round_.topic, round_.target)
    followers = sorted({1, 2, 3} - {leader})
    severed = [followers[index] for index in round_.severed]
    for broker_id in severed:
        cluster.pause_follower(broker_id)
    pause(round_.jitter)
    fail, recover = (
        (cluster.kill, cluster.start) if round_.fault is Fault.KILL else (cluster.pause, cluster.resume)
    )
    fail(leader)
    for broker_id in severed:
        cluster.resume_follower(broker_id)
    pause(round_.down)
    recover(leader)
    until(
        lambda: leads_as_preferred(cluster, admin, round_), explain=lambda: (round_, states(cluster, round_))
    )
    written = writer.sent
    until(lambda: writer.sent >= written + AFTER)


def pause(seconds: float) -> None:
    """Wait for a time that the seed decides."""
    Event().wait(seconds)


def states(cluster: LiveCluster, round_: Round) -> object:
    return cluster.look(lambda c: c.controller.image.topics[round_.topic].partitions)


def until_all_are_in_sync(cluster: LiveCluster, round_: Round) -> None:
    cluster.until(lambda c: all_in_sync(c, round_))


def all_in_sync(cluster: Cluster, round_: Round) -> bool:
    partitions = cluster.controller.image.topics[round_.topic].partitions
    return all(len(state.in_sync) == len(state.replicas) for state in partitions)


def leads_as_preferred(cluster: LiveCluster, admin: AdminClient, round_: Round) -> bool:
    until_all_are_in_sync(cluster, round_)
    partitions = [ClientTopicPartition(round_.topic, index) for index in range(round_.partitions)]
    admin.elect_leaders(ElectionType.PREFERRED, partitions).result(PATIENCE)
    return cluster.look(
        lambda c: all(
            state.leader == state.replicas[0] for state in c.controller.image.topics[round_.topic].partitions
        )
    )


def read_all(bootstrap_servers: str, round_: Round) -> dict[int, dict[int, int]]:
    """Return the records that a consumer reads, by partition and offset."""
    found: dict[int, dict[int, int]] = {index: {} for index in range(round_.partitions)}
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
        consumer.assign([ClientTopicPartition(round_.topic, index, 0) for index in found])
        while len(ended) < round_.partitions:
            message = consumer.poll(PATIENCE)
            assert message is not None, f"{round_}: no end after {found}"
            error, partition, offset, value = (
                message.error(),
                message.partition(),
                message.offset(),
                message.value(),
            )
            assert partition is not None, f"{round_}: {error}"
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, f"{round_}: {error}"
                ended.add(partition)
            else:
                assert offset is not None
                assert value is not None
                found[partition][offset] = int(value)
    finally:
        consumer.close()
    return found
