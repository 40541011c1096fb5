"""A consumer that reads its partitions up to the high watermark, and checks the delivery."""

from collections.abc import Mapping, Sequence

import anyio
from anyio.lowlevel import checkpoint

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.requests import FetchParams, PartitionFetch
from examples.broker.simulator.workload import Run
from examples.broker.topic_partition import TopicPartition


class Consumer:
    """Sends one fetch at a time for all its partitions, each from its current position."""

    def __init__(self, run: Run, topic_partitions: Sequence[TopicPartition]) -> None:
        self.consumed = 0
        self.positions = dict.fromkeys(topic_partitions, 0)
        self._run = run
        self._params = FetchParams(min_bytes=run.workload.min_bytes, max_wait=run.workload.max_wait)
        self._progress = anyio.Event()

    async def run(self) -> None:
        """Consume until cancelled. Raises DeliveryError at the first batch that is not the next one."""
        while True:
            began = self._run.clock()
            request = {entry: PartitionFetch(position) for entry, position in self.positions.items()}
            response = await self._run.broker.fetch(self._params, request)
            now = self._run.clock()
            self._run.fetch_waits.record(now - began)
            for topic_partition, fetched in response.items():
                if fetched.error is not ErrorCode.none:
                    position = self.positions[topic_partition]
                    raise ApiError(fetched.error, f"consuming {topic_partition} from {position}")
                for stored in fetched.batches:
                    batch = self._run.delivery.consumed(topic_partition, stored)
                    self._run.end_to_end_waits.record(now - batch.due_time)
                    self.positions[topic_partition] = stored.next_offset
                    self.consumed += stored.record_count
            self._progress.set()
            # A fetch that is answered at once does not suspend, so let other tasks run here.
            await checkpoint()

    async def reach(self, ends: Mapping[TopicPartition, int]) -> None:
        """Wait until every position has reached its end."""
        while any(position < ends[entry] for entry, position in self.positions.items()):
            self._progress = anyio.Event()
            await self._progress.wait()
