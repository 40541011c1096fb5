"""Replicas that lag, hang and return, as a producer with acks=all sees them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.broker.cluster import Cluster, ClusterConfig
from examples.broker.metadata import PartitionState
from examples.broker.replication.partition import Partition
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.live_cluster import PATIENCE, LiveCluster, until

pytestmark = pytest.mark.real_time

EVENTS = TopicPartition("events", 0)
# Seconds.
LAG_TIME = 0.7
FETCH_WAIT = 0.1
SESSION_TIMEOUT = 1.0
NEVER = 600.0

FAST = replace(
    CONFIG,
    defaults=replace(CONFIG.defaults, broker_session_timeout=NEVER),
    broker=replace(
        CONFIG.broker,
        replica_lag_time_max=LAG_TIME,
        replica_fetch_wait_max=FETCH_WAIT,
        broker_heartbeat_interval=0.05,
    ),
)
PATIENT = replace(FAST, broker=replace(FAST.broker, replica_lag_time_max=NEVER))
FENCING = replace(PATIENT, defaults=replace(PATIENT.defaults, broker_session_timeout=SESSION_TIMEOUT))


@contextmanager
def running(config: ClusterConfig, *, min_insync_replicas: int) -> Iterator[LiveCluster]:
    """Run a cluster with one partition on three brokers, led by the first one."""
    with LiveCluster.running(config) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        topic = NewTopic(
            EVENTS.topic,
            num_partitions=1,
            replica_assignment=[[1, 2, 3]],
            config={"min.insync.replicas": str(min_insync_replicas)},
        )
        admin.create_topics([topic])[EVENTS.topic].result(PATIENCE)
        cluster.until(lambda c: all(node.replicas.partitions.get(EVENTS) for node in c.nodes.values()))
        yield cluster


@dataclass(slots=True)
class Delivery:
    """The outcome of one record, and the time of its answer."""

    sent: float
    answered: float | None = None
    offset: int | None = None
    error: int | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        self.answered = time.monotonic()
        self.offset = message.offset()
        self.error = None if error is None else error.code()

    @property
    def took(self) -> float:
        assert self.answered is not None
        return self.answered - self.sent


class OneShotProducer:
    """A producer without retries."""

    def __init__(self, cluster: LiveCluster, *, request_timeout: float = PATIENCE, acks: int = -1) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "acks": acks,
                "retries": 0,
                "linger.ms": 0,
                "request.timeout.ms": int(request_timeout * 1000),
                "message.timeout.ms": int(2 * PATIENCE * 1000),
                "topic.metadata.refresh.interval.ms": 100,
                "log_level": 0,
            }
        )

    def begin(self, value: str) -> Delivery:
        delivery = Delivery(time.monotonic())
        self._producer.produce(EVENTS.topic, value, partition=0, on_delivery=delivery)
        return delivery

    def answer(self, delivery: Delivery) -> Delivery:
        until(lambda: self._producer.poll(0.01) and delivery.answered, within=2 * PATIENCE)
        return delivery

    def send(self, value: str) -> Delivery:
        return self.answer(self.begin(value))


def replica(cluster: Cluster, broker_id: int) -> Partition:
    partition = cluster.nodes[broker_id].replicas.partitions.get(EVENTS)
    assert partition is not None
    return partition


def end(cluster: LiveCluster, broker_id: int) -> int:
    return cluster.look(lambda c: replica(c, broker_id).log.log_end_offset)


def mark(cluster: LiveCluster, broker_id: int) -> int:
    return cluster.look(lambda c: replica(c, broker_id).high_watermark)


def state(cluster: Cluster) -> PartitionState:
    found = cluster.controller.image.partition(EVENTS)
    assert found is not None
    return found


def in_sync(cluster: LiveCluster) -> tuple[int, ...]:
    return cluster.look(lambda c: state(c).in_sync)


def until_in_sync(cluster: LiveCluster, *broker_ids: int) -> None:
    cluster.until(lambda c: state(c).in_sync == broker_ids)


def stored(cluster: LiveCluster, broker_id: int) -> list[bytes]:
    return cluster.look(lambda c: [batch.data for batch in replica(c, broker_id).log.batches()])


def test_a_paused_follower_leaves_the_isr_after_the_lag_time_and_rejoins_when_caught_up() -> None:
    with running(FAST, min_insync_replicas=2) as cluster:
        producer = OneShotProducer(cluster)
        assert producer.send("while all are in sync").error is None
        cluster.pause_follower(3)
        paused_at = end(cluster, 3)
        delivery = producer.begin("that one follower does not get")
        until_in_sync(cluster, 1, 2)
        # The leader knows that it was caught up when its last fetch arrived, which then waited for records.
        assert time.monotonic() - delivery.sent > LAG_TIME - FETCH_WAIT
        assert producer.answer(delivery).error is None
        assert [producer.send(f"without it, {n}").error for n in range(5)] == [None] * 5
        assert end(cluster, 3) == paused_at < mark(cluster, 1) == end(cluster, 1)
        cluster.resume_follower(3)
        until_in_sync(cluster, 1, 2, 3)
        assert stored(cluster, 3) == stored(cluster, 2) == stored(cluster, 1)


def test_a_record_is_not_acknowledged_before_a_hanging_follower_has_left_the_isr() -> None:
    with running(FAST, min_insync_replicas=2) as cluster:
        producer = OneShotProducer(cluster)
        producer.send("so that the connection is there")
        cluster.pause_follower(3)
        assert producer.send("late").took > LAG_TIME - FETCH_WAIT
        assert in_sync(cluster) == (1, 2)


def test_a_follower_that_is_not_in_sync_is_not_elected() -> None:
    with running(FAST, min_insync_replicas=1) as cluster:
        cluster.pause_follower(2)
        assert OneShotProducer(cluster).send("that broker 2 does not get").error is None
        assert in_sync(cluster) == (1, 3)
        cluster.stop(1)
        assert cluster.leader_of(EVENTS.topic) == 3
        assert end(cluster, 3) == 1
        assert end(cluster, 2) == 0


@pytest.mark.parametrize("broker_ids", [(2,), (2, 3)])
def test_below_min_insync_replicas_nothing_is_appended(broker_ids: tuple[int, ...]) -> None:
    with running(FAST, min_insync_replicas=4 - len(broker_ids)) as cluster:
        producer = OneShotProducer(cluster)
        for broker_id in broker_ids:
            cluster.pause_follower(broker_id)
        # A produce with acks=1 succeeds, and so the followers lag.
        assert OneShotProducer(cluster, acks=1).send("for the leader").error is None
        cluster.until(lambda c: len(state(c).in_sync) == 3 - len(broker_ids))
        appended = end(cluster, 1)
        assert producer.send("refused").error == KafkaError.NOT_ENOUGH_REPLICAS
        assert end(cluster, 1) == appended
        for broker_id in broker_ids:
            cluster.resume_follower(broker_id)
        until_in_sync(cluster, 1, 2, 3)
        assert producer.send("welcome").error is None


def test_a_pending_record_is_not_committed_while_the_isr_is_below_the_minimum() -> None:
    """The high watermark does not move then (KAFKA-15583), so the record times out."""
    with running(FAST, min_insync_replicas=3) as cluster:
        producer = OneShotProducer(cluster, request_timeout=2 * LAG_TIME)
        assert producer.send("while all are in sync").error is None
        committed = mark(cluster, 1)
        cluster.pause_follower(3)
        delivery = producer.begin("waiting")
        until_in_sync(cluster, 1, 2)
        assert end(cluster, 1) == committed + 1
        assert OneShotProducer(cluster).send("too late").error == KafkaError.NOT_ENOUGH_REPLICAS
        assert producer.answer(delivery).error == KafkaError.REQUEST_TIMED_OUT
        assert delivery.took >= 2 * LAG_TIME
        assert mark(cluster, 1) == committed
        cluster.resume_follower(3)
        cluster.until(lambda c: replica(c, 1).high_watermark == committed + 1)


def test_a_hanging_in_sync_follower_makes_a_produce_time_out() -> None:
    with running(PATIENT, min_insync_replicas=1) as cluster:
        producer = OneShotProducer(cluster, request_timeout=0.6)
        assert producer.send("while all are in sync").error is None
        cluster.pause_follower(2)
        delivery = producer.send("late")
        assert delivery.error == KafkaError.REQUEST_TIMED_OUT
        assert 0.6 <= delivery.took < PATIENCE
        assert in_sync(cluster) == (1, 2, 3)
        # The record is appended nevertheless, and committed once the follower has it.
        assert mark(cluster, 1) == 1 < end(cluster, 1) == 2
        cluster.resume_follower(2)
        cluster.until(lambda c: replica(c, 1).high_watermark == 2)
        assert producer.send("in time").error is None


def test_a_hanging_leader_is_replaced_and_truncates_unacknowledged_records_when_it_resumes() -> None:
    with running(FENCING, min_insync_replicas=2) as cluster:
        producer = OneShotProducer(cluster)
        assert producer.send("while all are in sync").offset == 0
        for follower in (2, 3):
            cluster.pause_follower(follower)
        unacknowledged = producer.begin("that only the leader has")
        cluster.until(lambda c: replica(c, 1).log.log_end_offset == 2)
        paused_at = time.monotonic()
        fenced_at = cluster.look(pause_leader)
        for follower in (2, 3):
            cluster.resume_follower(follower)

        cluster.until(lambda c: state(c).leader == 2)
        assert time.monotonic() >= fenced_at > paused_at + SESSION_TIMEOUT / 2
        assert in_sync(cluster) == (2, 3)
        assert [OneShotProducer(cluster).send("of the new leader").offset for _ in range(3)] == [1, 2, 3]
        # The old leader does not know this yet, and has not answered the client.
        assert end(cluster, 1) == 2
        assert cluster.look(lambda c: replica(c, 1).is_leader)
        assert unacknowledged.answered is None

        cluster.resume(1)
        until_in_sync(cluster, 1, 2, 3)
        assert cluster.leader_of(EVENTS.topic) == 2
        # The client has got the new leader's address, and has retried.
        assert producer.answer(unacknowledged).offset == 4
        assert end(cluster, 1) == 5
        assert stored(cluster, 1) == stored(cluster, 2) == stored(cluster, 3)
        assert [b"that only the leader has" in data for data in stored(cluster, 1)] == [False] * 4 + [True]


def pause_leader(cluster: Cluster) -> float:
    """Pause the leader; return the deadline of its session by the monotonic clock."""
    cluster.pause(1)
    (session,) = cluster.controller.session_purgatory.operations(1)
    assert session.deadline is not None
    return session.deadline
