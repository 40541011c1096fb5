"""A producer that offers records at a fixed rate, whether or not the broker keeps up."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import anyio

from examples.broker.errors import ErrorCode
from examples.broker.replication.produce import ProduceParams
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.simulator.batch_identity import BatchIdentity
from examples.broker.simulator.delivery import DeliveryCheck
from examples.broker.simulator.waits import WaitHistogram
from examples.broker.simulator.workload import Workload
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition

MAX_IN_FLIGHT_REQUESTS: Final = 5
# So much early is on time: a sleep shorter than what a clock can tell would never be over.
CLOCK_STEP: Final = 1e-6
# So much late is on time as well; a producer that is further behind when its time is over does not catch up.
TIMER_SLACK: Final = 0.01


class Producer:
    """Sends batches on a schedule, as soon as each is due and a request may go out.

    An open loop: a slow broker shows as a backlog and not as a lower rate. A request takes what is due, one
    batch per partition; ``MAX_IN_FLIGHT_REQUESTS`` may be unanswered, as in Kafka's producer
    (max.in.flight.requests.per.connection).
    """

    def __init__(
        self,
        producer_id: int,
        workload: Workload,
        topic_partitions: Sequence[TopicPartition],
        broker: ReplicaManager,
        delivery: DeliveryCheck,
        waits: WaitHistogram,
        clock: Callable[[], float],
    ) -> None:
        self.acknowledged = 0
        self.errors: Counter[ErrorCode] = Counter()
        self._producer_id = producer_id
        self._workload = workload
        self._params = ProduceParams(required_acks=workload.acks)
        self._broker = broker
        self._delivery = delivery
        self._waits = waits
        self._clock = clock
        self._interval = workload.batch * workload.producers / workload.rate
        # Producers take turns rather than all being due at once.
        self._phase = self._interval * (producer_id + 1) / workload.producers
        self._sent_batches = 0
        self._next_sequence = dict.fromkeys(topic_partitions, 0)
        self._turns = self._take_turns(
            list(topic_partitions), random.Random(f"{workload.seed}/{producer_id}")
        )
        self._next_partition = next(self._turns)
        self._in_flight = anyio.Semaphore(MAX_IN_FLIGHT_REQUESTS)

    def offered(self, elapsed: float) -> int:
        """Records that have come due ``elapsed`` seconds after the start."""
        return self._due_batches(elapsed) * self._workload.batch

    async def run(self, start: float) -> None:
        """Offer for the workload's duration, then wait for the answers that are out."""
        async with anyio.create_task_group() as requests:
            while self._sent_batches < self._due_batches(math.inf):
                elapsed = self._clock() - start
                if self._sent_batches == self._due_batches(elapsed):
                    await anyio.sleep(self._due_at(self._sent_batches) - elapsed)
                    continue
                if elapsed > self._workload.duration + TIMER_SLACK:
                    break
                await self._in_flight.acquire()
                # These tasks append in the order they are started: a loop runs first what was ready first.
                requests.start_soon(self._send, self._next_request(start))

    def _next_request(self, start: float) -> dict[TopicPartition, BatchIdentity]:
        """What is due, up to the first batch for a partition that has one already."""
        request: dict[TopicPartition, BatchIdentity] = {}
        due = self._due_batches(self._clock() - start)
        while self._sent_batches < due and self._next_partition not in request:
            topic_partition = self._next_partition
            batch = BatchIdentity(
                self._producer_id,
                self._next_sequence[topic_partition],
                self._workload.batch,
                start + self._due_at(self._sent_batches),
            )
            request[topic_partition] = batch
            self._next_sequence[topic_partition] = batch.next_sequence
            self._next_partition = next(self._turns)
            self._sent_batches += 1
        return request

    async def _send(self, request: dict[TopicPartition, BatchIdentity]) -> None:
        encoded: dict[TopicPartition, RecordBatch] = {}
        for topic_partition, batch in request.items():
            encoded[topic_partition] = RecordBatch(
                batch.record_count, batch.encode(self._workload.batch_bytes)
            )
            self._delivery.sent(topic_partition, batch)
        began = self._clock()
        response = await self._broker.append(self._params, encoded)
        self._waits.record(self._clock() - began)
        self._in_flight.release()
        for topic_partition, produced in response.items():
            batch = request[topic_partition]
            if produced.error is ErrorCode.NONE:
                self._delivery.acknowledged(topic_partition, batch, produced.base_offset)
                self.acknowledged += batch.record_count
            else:
                self._delivery.refused(topic_partition, batch)
                self.errors[produced.error] += 1

    def _due_batches(self, elapsed: float) -> int:
        """How many come due in that time, within the workload's duration."""
        reached = min(elapsed, self._workload.duration) + CLOCK_STEP
        return max(0, 1 + math.floor((reached - self._phase) / self._interval))

    def _due_at(self, index: int) -> float:
        return self._phase + index * self._interval

    @staticmethod
    def _take_turns(topic_partitions: list[TopicPartition], order: random.Random) -> Iterator[TopicPartition]:
        """Every partition once, in an order of chance, again and again."""
        while True:
            order.shuffle(topic_partitions)
            yield from topic_partitions
