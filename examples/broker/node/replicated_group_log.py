"""The group coordinator's log: the partitions of ``__consumer_offsets``."""

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import anyio
from kio.records.schema import NewRecordBatch
from kio.records.schema import Record as WireRecord
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ErrorCode
from examples.broker.group.group_log import Record, keep_latest, run_in_slices
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import ALL_ACKS, ProduceParams
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.wire_batch import WireRecordBatch, keys_and_values
from examples.broker.topic_partition import TopicPartition

# Kafka's offsets.commit.timeout.ms.
COMMIT_TIMEOUT: Final = 5.0
# Seconds between two looks at the sizes of the logs.
TRIM_INTERVAL: Final = 1.0
# Bytes. A smaller log is not trimmed. A takeover reads it all.
SMALLEST_TRIMMED: Final = 2 << 20
# Bytes that are read at a time.
_READ_AHEAD: Final = 1 << 16
# Bytes of records that are written again at a time. The first one may be larger.
_PIECE: Final = 1 << 14
_NO_PRODUCER: Final = -1


class ReplicatedGroupLog:
    """The ``GroupLog`` of a broker. It appends as a producer with acks=all, and reads its own replica.

    An append is a ``DelayedProduce``: a commit succeeds once all in-sync replicas have it, so that another
    broker can take over the group (kafka.coordinator.group.GroupMetadataManager). ``run`` trims the logs that
    are led, so that they do not grow without end, and a takeover has little to read.
    """

    def __init__(
        self, replicas: ReplicaManager, partitions: int, *, smallest_trimmed: int = SMALLEST_TRIMMED
    ) -> None:
        self._replicas = replicas
        self._partitions = range(partitions)
        self._smallest_trimmed = smallest_trimmed
        # The size of each log when it was last trimmed.
        self._trimmed: dict[int, int] = {}
        # How many times each partition is being read.
        self._readers: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"<ReplicatedGroupLog of {len(self._partitions)} partitions>"

    async def run(self) -> None:
        """Trim the logs every ``TRIM_INTERVAL`` seconds."""
        while True:
            await anyio.sleep(TRIM_INTERVAL)
            await self.trim()

    async def trim(self) -> None:
        """Trim the logs that this broker leads, and that have doubled since they were last trimmed.

        The records in use are written again at the end, and those before are deleted. Followers delete them,
        too, with their next fetch. Kafka's log cleaner deletes single records instead, which would leave gaps
        between the offsets. When leadership is lost or a write fails, nothing is deleted.
        """
        for index in self._partitions:
            partition = self._replicas.partitions.get(TopicPartition(OFFSETS_TOPIC, index))
            if partition is None or not partition.is_leader:
                self._trimmed.pop(index, None)
            elif partition.log.size_in_bytes >= max(
                self._smallest_trimmed, 2 * self._trimmed.get(index, 0)
            ) and await self._trim(index, partition):
                self._trimmed[index] = partition.log.size_in_bytes

    async def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        topic_partition = TopicPartition(OFFSETS_TOPIC, partition)
        response = await self._replicas.append(
            ProduceParams(ALL_ACKS, COMMIT_TIMEOUT), {topic_partition: _batch_of(records)}
        )
        return response[topic_partition].error

    def read(self, partition: int) -> Iterator[Record]:
        """Return the records in this broker's replica, committed or not, as of the first step."""
        log = self._replicas.partitions.leader(TopicPartition(OFFSETS_TOPIC, partition)).log
        self._readers[partition] += 1
        try:
            yield from _records(log, log.log_start_offset, log.log_end_offset)
        finally:
            self._readers[partition] -= 1

    async def _trim(self, index: int, partition: Partition) -> bool:
        """Write the committed records in use again, and delete what is before them. Return whether it did."""
        topic_partition = TopicPartition(OFFSETS_TOPIC, index)
        leader_epoch, log = partition.leader_epoch, partition.log
        start = end = partition.high_watermark
        latest: dict[bytes, bytes] = {}
        await run_in_slices(keep_latest(_records(log, log.log_start_offset, end), latest))
        replaced: set[bytes] = set()

        def goes_on() -> bool:
            # What is appended in one leader epoch may be truncated in the next one.
            hosted = self._replicas.partitions.get(topic_partition)
            return hosted is partition and partition.leader_epoch == leader_epoch

        for piece in _pieces(latest):
            if not goes_on():
                return False
            # What was appended meanwhile replaces records, too.
            replaced.update(key for key, _ in _records(log, end, log.log_end_offset))
            end = log.log_end_offset
            records = [record for record in piece if record[0] not in replaced]
            if records and await self.append(index, records) is not ErrorCode.none:
                return False
        # What has replaced a record has to be committed as well, and a load reads on where it has begun.
        if not goes_on() or end > partition.high_watermark or self._readers[index]:
            return False
        await self._replicas.delete_records(0.0, {topic_partition: start})
        return True


def _records(log: PartitionLog, offset: int, end: int) -> Iterator[Record]:
    """Return the records from an offset to the end, unless the log begins anew between two steps."""
    while log.log_start_offset <= offset < min(end, log.log_end_offset):
        for batch in log.read(offset, _READ_AHEAD, end):
            for key, value in keys_and_values(batch.data):
                yield key or b"", value
            offset = batch.next_offset


def _pieces(latest: dict[bytes, bytes]) -> Iterator[list[Record]]:
    """Return the records in lists of ``_PIECE`` bytes. They are removed one by one; see ``load``."""
    piece: list[Record] = []
    size = 0
    while latest:
        key, value = latest.popitem()
        size += len(key) + len(value)
        if piece and size > _PIECE:
            yield piece
            piece, size = [], len(key) + len(value)
        piece.append((key, value))
    if piece:
        yield piece


def _batch_of(records: Sequence[Record]) -> WireRecordBatch:
    now = TZAwareMicros.parse(datetime.now(UTC))
    buffer = io.BytesIO()
    write_new_batch(
        buffer,
        NewRecordBatch(
            producer_id=i64(_NO_PRODUCER),
            producer_epoch=i16(_NO_PRODUCER),
            base_sequence=i32(_NO_PRODUCER),
            attributes=i16(0),
            records=tuple(
                WireRecord(
                    attributes=i8(0), timestamp=now, offset=i64(index), key=key, value=value, headers=()
                )
                for index, (key, value) in enumerate(records)
            ),
        ),
    )
    return WireRecordBatch.parse(buffer.getvalue())
