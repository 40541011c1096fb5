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

from examples.broker.cluster import Cluster
from examples.broker.controller.election import ElectionType
from examples.broker.controller.new_topic import NewTopic
from examples.broker.metadata import PartitionState, TopicConfig
from tests.examples.broker.live.clients.python_clients import NAMED
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.idempotent_writers import Writer
from tests.examples.broker.live.live_cluster import LiveCluster, until
from tests.examples.broker.live.stored_once import check_partition

pytestmark = pytest.mark.real_time

# These rounds include each client. The others start more slowly than librdkafka.
WRITERS = ("confluent-kafka", "confluent-kafka", "kafka-python", "confluent-kafka", "aiokafka")
SLOW_ROUNDS = len(WRITERS)
LONG_ROUNDS = int(os.environ.get("BROKER_FAILURE_ROUNDS", "20"))
FAST = replace(
    CONFIG, broker=replace(CONFIG.broker, replica_fetch_wait_max=0.1, broker_heartbeat_interval=0.05)
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
    leader has records to truncate. It is down for ``down`` seconds. A killed leader is replaced, a paused one
    only where the round is ``fencing``.
    """

    seed: int
    partitions: int
    min_insync_replicas: int
    target: int
    fault: Fault
    fencing: bool
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
            partitions,
            random.choice((1, 2)),
            random.randrange(partitions),
            random.choice((Fault.KILL, Fault.KILL, Fault.PAUSE)),
            random.choice((True, True, False)),
            random.choice(((), (0,), (1,), (0, 1))),
            # Often 0 or 1, when no broker knows the producer yet.
            random.choice((0, 1, random.randint(1, BEFORE))),
            random.uniform(0.0, 0.02),
            random.uniform(0.0, 0.6),
        )

    @property
    def topic(self) -> str:
        return f"round-{self.seed}"

    def states(self, cluster: Cluster) -> tuple[PartitionState, ...]:
        return cluster.controller.image.topics[self.topic].partitions

    def is_in_sync(self, cluster: Cluster) -> bool:
        return all(len(state.in_sync) == len(state.replicas) for state in self.states(cluster))

    def is_led_as_preferred(self, cluster: Cluster) -> bool:
        """Elect the preferred leaders, which must be in sync first."""
        if not self.is_in_sync(cluster):
            return False
        cluster.controller.elect_leaders(ElectionType.PREFERRED, None)
        return all(state.leader == state.replicas[0] for state in self.states(cluster))


@pytest.fixture(scope="module")
def fast_cluster() -> Iterator[LiveCluster]:
    with LiveCluster.running(FAST) as cluster:
        yield cluster


@pytest.mark.parametrize(
    "seed",
    [
        *range(SLOW_ROUNDS),
        *(pytest.param(seed, marks=pytest.mark.long) for seed in range(SLOW_ROUNDS, LONG_ROUNDS)),
    ],
)
def test_acknowledged_records_are_stored_once_in_order_on_all_replicas(
    fast_cluster: LiveCluster, seed: int
) -> None:
    round_ = Round.of(seed)
    config = TopicConfig(min_insync_replicas=round_.min_insync_replicas)
    fast_cluster.create_topics(NewTopic(round_.topic, round_.partitions, 3, config=config))
    client = NAMED[WRITERS[seed % len(WRITERS)]]
    with (
        Writer.running(client, fast_cluster.bootstrap_servers, round_.topic) as writer,
        ThreadPoolExecutor(1) as executor,
    ):
        harm = executor.submit(fail_and_recover, fast_cluster, writer, round_)
        while not harm.done():
            writer.send(writer.sent % round_.partitions, writer.sent)
            wait([harm], PACE)
        harm.result()
        writer.flush()
    fast_cluster.until_replicated(round_.topic, round_.partitions)
    faults = [*writer.failed]
    for partition in range(round_.partitions):
        faults += check_partition(fast_cluster, partition, writer)[1]
    assert not faults, "\n".join([f"{round_}, {writer}:", *faults[:20]])
    fast_cluster.look(lambda cluster: cluster.controller.delete_topic(round_.topic))


def fail_and_recover(cluster: LiveCluster, writer: Writer, round_: Round) -> None:
    """Inject the fault under load, end it, and elect the preferred leaders once all replicas are in sync."""
    # The previous round may still change the metadata.
    cluster.until(round_.is_in_sync)
    until(lambda: len(writer) >= round_.before or writer.failed)
    leader = cluster.leader_of(round_.topic, round_.target)
    followers = sorted({1, 2, 3} - {leader})
    severed = [followers[index] for index in round_.severed]
    for broker_id in severed:
        cluster.pause_follower(broker_id)
    pause(round_.jitter)
    if round_.fault is Fault.KILL:
        cluster.kill(leader)
    else:
        cluster.pause(leader)
        if round_.fencing:
            cluster.fence(leader)
    for broker_id in severed:
        cluster.resume_follower(broker_id)
    pause(round_.down)
    (cluster.start if round_.fault is Fault.KILL else cluster.resume)(leader)
    until(
        lambda: cluster.look(round_.is_led_as_preferred),
        explain=lambda: (round_, cluster.look(round_.states)),
    )
    written = writer.sent
    until(lambda: writer.sent >= written + AFTER)


def pause(seconds: float) -> None:
    """Wait for a time that the seed decides."""
    Event().wait(seconds)
