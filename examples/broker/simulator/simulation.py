"""A simulation: a broker, its followers and its clients under load, and the check of the delivery."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Final
from uuid import UUID

import anyio

from examples.broker.errors import ErrorCode
from examples.broker.metadata import MetadataImage, PartitionState, TopicConfig, TopicImage
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_fetcher import Leader, ReplicaFetcher
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import ProduceParams
from examples.broker.simulator.consumer import Consumer
from examples.broker.simulator.delivery import DeliveryError
from examples.broker.simulator.measures import Backlog, Waits
from examples.broker.simulator.producer import Producer
from examples.broker.simulator.report import PurgatoryStatus, Report, Status
from examples.broker.simulator.workload import Run, Workload
from examples.first_error import first_error
from purgatory import COMPILED, Purgatory

LEADER_ID: Final = 0
MIN_INSYNC_REPLICAS: Final = 2
SAMPLE_SECONDS: Final = 0.1
RETENTION_SECONDS: Final = 1.0
DRAIN_SECONDS: Final = 30.0


class Simulation:
    """One run over an open broker. ``clock`` measures the waits and the producers' schedule.

    The default clock is not the loop's, since uvloop's has a resolution of one millisecond. ``leader`` gives
    the broker as the follower with an id reaches it; by default it does so without a delay. The producers
    have the ``produce_timeouts``, in seconds, in turn.
    """

    def __init__(
        self,
        workload: Workload,
        broker: ReplicaManager,
        clock: Callable[[], float] = time.monotonic,
        *,
        leader: Callable[[int], Leader] | None = None,
        produce_timeouts: Sequence[float] = (ProduceParams().timeout,),
    ) -> None:
        self.workload = workload
        self._run = run = Run(workload, broker, clock)
        self._started = clock()
        self._backlog, self._lag = Backlog(), Backlog()
        image = _image(workload)
        keys = [topic_partition for topic_partition, _ in image.partitions()]
        broker.apply(image, keys)
        self.partitions = {entry: broker.partitions.leader(entry) for entry in keys}
        self._followers: list[ReplicaFetcher] = []
        for replica_id in range(LEADER_ID + 1, LEADER_ID + workload.replicas):
            replicas = HostedPartitions(replica_id)
            replicas.apply(image, keys, now=0)
            reached = broker if leader is None else leader(replica_id)
            self._followers.append(ReplicaFetcher(reached, replicas, keys))
        self._producers = [
            Producer(index, run, ProduceParams(workload.acks, timeout), keys)
            for index, timeout in zip(range(workload.producers), cycle(produce_timeouts), strict=False)
        ]
        self._consumers = [
            Consumer(run, keys[index :: workload.consumers]) for index in range(workload.consumers)
        ]
        self._positions = {
            entry: consumer.positions for consumer in self._consumers for entry in consumer.positions
        }

    async def run(self) -> Report:
        """Produce and consume for the workload's duration, consume the rest, then check the delivery.

        A wrong delivery is in the report. Other errors are raised.
        """
        self._started = self._run.clock()
        under_load: Status | None = None
        failure: str | None = None
        try:
            async with anyio.create_task_group() as background:
                for follower in self._followers:
                    background.start_soon(follower.run)
                for consumer in self._consumers:
                    background.start_soon(consumer.run)
                background.start_soon(self._sample)
                background.start_soon(self._retain)
                async with anyio.create_task_group() as producers:
                    for producer in self._producers:
                        producers.start_soon(producer.run, self._started)
                under_load = self.status()
                await self._drain()
                background.cancel_scope.cancel()
            self._run.delivery.check_complete()
        except* DeliveryError as failures:
            failure = str(first_error(failures))
        drained = self.status()
        return Report(
            workload=self.workload,
            loop=type(asyncio.get_running_loop()).__module__.partition(".")[0],
            compiled=COMPILED,
            under_load=under_load or drained,
            drained=drained,
            batches_verified=self._run.delivery.batches_consumed,
            failure=failure,
        )

    def status(self) -> Status:
        elapsed = self._run.clock() - self._started
        errors: Counter[ErrorCode] = sum((producer.errors for producer in self._producers), Counter())
        return Status(
            elapsed=elapsed,
            offered=self._offered(elapsed),
            acknowledged=self._acknowledged(),
            consumed=self._consumed(),
            errors={code.name.upper(): count for code, count in errors.items()},
            produce=_purgatory_status(self._run.broker.produce_purgatory, self._run.produce_waits),
            fetch=_purgatory_status(self._run.broker.fetch_purgatory, self._run.fetch_waits),
            end_to_end=self._run.end_to_end_waits.summary(),
            backlog=self._backlog.status(self.workload.rate),
            lag=self._lag.status(self.workload.rate),
        )

    async def _drain(self) -> None:
        ends = {entry: partition.log.log_end_offset for entry, partition in self.partitions.items()}
        # A consumer's last fetch may wait for its whole max_wait, since no more bytes come.
        timeout = self.workload.max_wait + DRAIN_SECONDS
        try:
            with anyio.fail_after(timeout):
                for consumer in self._consumers:
                    await consumer.reach(ends)
        except TimeoutError:
            behind = {str(e): self._positions[e][e] for e in ends if self._positions[e][e] < ends[e]}
            raise DeliveryError(
                f"partitions still not consumed {timeout:g} s after the last record; positions {behind}"
            ) from None

    async def _sample(self) -> None:
        while True:
            elapsed = self._run.clock() - self._started
            appended = sum(partition.log.log_end_offset for partition in self.partitions.values())
            self._backlog.sample(elapsed, self._offered(elapsed) - self._acknowledged())
            self._lag.sample(elapsed, appended - self._consumed())
            await anyio.sleep(SAMPLE_SECONDS)

    async def _retain(self) -> None:
        """Delete the records that every consumer and every replica has, to bound the memory of a long run."""
        while True:
            await anyio.sleep(RETENTION_SECONDS)
            for topic_partition, partition in self.partitions.items():
                position = self._positions[topic_partition][topic_partition]
                partition.delete_records(min(position, partition.lowest_log_end_offset))

    def _offered(self, elapsed: float) -> int:
        return sum(producer.offered(elapsed) for producer in self._producers)

    def _acknowledged(self) -> int:
        return sum(producer.acknowledged for producer in self._producers)

    def _consumed(self) -> int:
        return sum(consumer.consumed for consumer in self._consumers)


def _image(workload: Workload) -> MetadataImage:
    """Return an image with one topic, which one broker leads, with every replica in sync."""
    replicas = tuple(range(LEADER_ID, LEADER_ID + workload.replicas))
    state = PartitionState(replicas, in_sync=replicas, leader=LEADER_ID)
    config = TopicConfig(min_insync_replicas=MIN_INSYNC_REPLICAS, segment_bytes=workload.segment_bytes)
    topic = TopicImage("events", UUID(int=1), (state,) * workload.partitions, config)
    return MetadataImage(topics={topic.name: topic})


def _purgatory_status(purgatory: Purgatory, waits: Waits) -> PurgatoryStatus:
    statistics = purgatory.statistics()
    return PurgatoryStatus(statistics.pending, statistics.completed, statistics.expired, waits.summary())
