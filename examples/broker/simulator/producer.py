"""A producer that sends records at a fixed rate, whether or not the broker keeps up."""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import anyio

from examples.broker.errors import ErrorCode
from examples.broker.replication.requests import ProduceParams
from examples.broker.simulator.delivery import BatchIdentity
from examples.broker.simulator.workload import Run
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition

MAX_IN_FLIGHT_REQUESTS: Final = 5
# Seconds. A batch that is this early is due: a sleep shorter than the clock's step would never end.
CLOCK_STEP: Final = 1e-6
# Seconds. A producer that is later than this at the end of the duration does not send its remaining batches.
TIMER_SLACK: Final = 0.01


class Producer:
    """Sends batches on a schedule, each as soon as it is due and a request is allowed.

    This is an open loop: a slow broker shows as a backlog and not as a lower rate. A request has the batches
    that are due, at most one for each partition. ``MAX_IN_FLIGHT_REQUESTS`` may be unanswered, as in Kafka's
    producer (max.in.flight.requests.per.connection).
    """

    def __init__(
        self, producer_id: int, run: Run, params: ProduceParams, topic_partitions: Sequence[TopicPartition]
    ) -> None:
        self.acknowledged = 0
        self.errors: Counter[ErrorCode] = Counter()
        self._producer_id = producer_id
        self._run = run
        self._workload = workload = run.workload
        self._params = params
        self._interval = workload.batch * workload.producers / workload.rate
        # The producers send at different times, so that their batches are not all due at once.
        self._phase = self._interval * (producer_id + 1) / workload.producers
        self._sent_batches = 0
        self._next_sequence = dict.fromkeys(topic_partitions, 0)
        self._partition_order = self._shuffled_rounds(
            list(topic_partitions), random.Random(f"{workload.seed}/{producer_id}")
        )
        self._next_partition = next(self._partition_order)
        self._in_flight = anyio.Semaphore(MAX_IN_FLIGHT_REQUESTS)

    def offered(self, elapsed: float) -> int:
        """Return the number of records that are due ``elapsed`` seconds after the start."""
        return self._due_batches(elapsed) * self._workload.batch

    async def run(self, start: float) -> None:
        """Send for the workload's duration, then wait for the pending answers."""
        async with anyio.create_task_group() as requests:
            while self._sent_batches < self._due_batches(math.inf):
                elapsed = self._run.clock() - start
                if self._sent_batches == self._due_batches(elapsed):
                    await anyio.sleep(self._due_at(self._sent_batches) - elapsed)
                    continue
                if elapsed > self._workload.duration + TIMER_SLACK:
                    break
                await self._in_flight.acquire()
                # The tasks append in the order of their start, since the event loop runs them in that order.
                requests.start_soon(self._send, self._next_request(start))

    def _next_request(self, start: float) -> dict[TopicPartition, BatchIdentity]:
        """Return the batches that are due, up to the first one for a partition that has one already."""
        request: dict[TopicPartition, BatchIdentity] = {}
        due = self._due_batches(self._run.clock() - start)
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
            self._next_partition = next(self._partition_order)
            self._sent_batches += 1
        return request

    async def _send(self, request: dict[TopicPartition, BatchIdentity]) -> None:
        encoded: dict[TopicPartition, RecordBatch] = {}
        for topic_partition, batch in request.items():
            encoded[topic_partition] = RecordBatch(
                batch.record_count, batch.encode(self._workload.batch_bytes)
            )
            self._run.delivery.sent(topic_partition, batch)
        began = self._run.clock()
        response = await self._run.broker.append(self._params, encoded)
        self._run.produce_waits.record(self._run.clock() - began)
        self._in_flight.release()
        for topic_partition, produced in response.items():
            batch = request[topic_partition]
            if produced.error is ErrorCode.none:
                self._run.delivery.acknowledged(topic_partition, batch, produced.base_offset)
                self.acknowledged += batch.record_count
            else:
                self._run.delivery.failed(topic_partition, batch)
                self.errors[produced.error] += 1

    def _due_batches(self, elapsed: float) -> int:
        """Return the number of batches that are due by then, within the workload's duration."""
        reached = min(elapsed, self._workload.duration) + CLOCK_STEP
        return max(0, 1 + math.floor((reached - self._phase) / self._interval))

    def _due_at(self, index: int) -> float:
        return self._phase + index * self._interval

    @staticmethod
    def _shuffled_rounds(
        topic_partitions: list[TopicPartition], random_order: random.Random
    ) -> Iterator[TopicPartition]:
        """Yield rounds for ever: in each one every partition once, in random order."""
        while True:
            random_order.shuffle(topic_partitions)
            yield from topic_partitions
