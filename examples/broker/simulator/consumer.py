"""A consumer that reads its partitions up to the high watermark, and checks the delivery."""

from collections.abc import Callable, Mapping, Sequence

import anyio
from anyio.lowlevel import checkpoint

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import FetchParams, PartitionFetch
from examples.broker.simulator.delivery import DeliveryCheck
from examples.broker.simulator.measures import WaitHistogram
from examples.broker.simulator.workload import Workload
from examples.broker.topic_partition import TopicPartition


class Consumer:
    """Sends one fetch at a time for all its partitions, each from its current position."""

    def __init__(
        self,
        workload: Workload,
        topic_partitions: Sequence[TopicPartition],
        broker: ReplicaManager,
        delivery: DeliveryCheck,
        fetch_waits: WaitHistogram,
        end_to_end_waits: WaitHistogram,
        clock: Callable[[], float],
    ) -> None:
        self.consumed = 0
        self.positions = dict.fromkeys(topic_partitions, 0)
        self._params = FetchParams(min_bytes=workload.min_bytes, max_wait=workload.max_wait)
        self._broker = broker
        self._delivery = delivery
        self._fetch_waits = fetch_waits
        self._end_to_end_waits = end_to_end_waits
        self._clock = clock
        self._progress = anyio.Event()

    async def run(self) -> None:
        """Consume until cancelled. Raises DeliveryError at the first batch that is not the next one."""
        while True:
            began = self._clock()
            request = {entry: PartitionFetch(position) for entry, position in self.positions.items()}
            response = await self._broker.fetch(self._params, request)
            now = self._clock()
            self._fetch_waits.record(now - began)
            for topic_partition, fetched in response.items():
                if fetched.error is not ErrorCode.none:
                    position = self.positions[topic_partition]
                    raise ApiError(fetched.error, f"consuming {topic_partition} from {position}")
                for stored in fetched.batches:
                    batch = self._delivery.consumed(topic_partition, stored)
                    self._end_to_end_waits.record(now - batch.due_time)
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
