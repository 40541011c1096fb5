"""The group coordinator's log: the partitions of ``__consumer_offsets``."""

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final

import anyio
from anyio.lowlevel import checkpoint
from kio.records.schema import NewRecordBatch
from kio.records.schema import Record as WireRecord
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ErrorCode
from examples.broker.group.group_log import SLICE, Record
from examples.broker.node.group_log_digest import GroupLogDigest
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import ALL_ACKS, ProduceParams
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition

# Kafka's offsets.commit.timeout.ms.
COMMIT_TIMEOUT: Final = 5.0
# Seconds. At a takeover, the new coordinator reads one by one what was committed since the last digest.
DIGEST_INTERVAL: Final = 1.0
# Bytes. A smaller log is not trimmed.
SMALLEST_TRIMMED: Final = 8 << 20
_NO_PRODUCER: Final = -1


class ReplicatedGroupLog:
    """The ``GroupLog`` of a broker. It appends as a producer with acks=all, and reads its own replica.

    An append is a ``DelayedProduce``: a commit succeeds once all in-sync replicas have it, so that another
    broker can take over the group (kafka.coordinator.group.GroupMetadataManager). ``run`` keeps a digest of
    each replica, led or followed, for that moment, and trims the logs that are led.
    """

    def __init__(
        self, replicas: ReplicaManager, partitions: int, *, smallest_trimmed: int = SMALLEST_TRIMMED
    ) -> None:
        self._replicas = replicas
        self._digests: dict[int, GroupLogDigest] = {}
        self._partitions = range(partitions)
        self._smallest_trimmed = smallest_trimmed
        # How many times each partition is being read.
        self._readers: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"<ReplicatedGroupLog with digests of {len(self._digests)} partitions>"

    async def run(self) -> None:
        """Bring the digests up to date every ``DIGEST_INTERVAL`` seconds, in slices, and trim the logs."""
        while True:
            await anyio.sleep(DIGEST_INTERVAL)
            steps = self.digest()
            while sum(1 for _ in islice(steps, SLICE)) == SLICE:
                await checkpoint()
            await self.trim()

    def digest(self) -> Iterator[None]:
        """Bring the digests up to date, one record at each step."""
        for index in self._partitions:
            partition = self._replicas.partitions.get(TopicPartition(OFFSETS_TOPIC, index))
            if partition is None:
                self._digests.pop(index, None)
            else:
                yield from self._digest_of(index, partition.log).read_on(partition)

    async def trim(self) -> None:
        """Trim the logs that this broker leads, where later records have replaced half of the bytes.

        The records in use are written again at the end, and those before are deleted. Followers delete them,
        too, with their next fetch. Kafka's log cleaner deletes single records instead, which would leave gaps
        between the offsets. When leadership is lost or a write fails, nothing is deleted.
        """
        for index, digest in list(self._digests.items()):
            partition = self._replicas.partitions.get(TopicPartition(OFFSETS_TOPIC, index))
            if (
                partition is not None
                and partition.is_leader
                and digest.is_of(partition.log)
                and partition.log.size_in_bytes >= max(self._smallest_trimmed, 2 * digest.size_in_bytes)
            ):
                await self._trim(index, partition, digest)

    async def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        topic_partition = TopicPartition(OFFSETS_TOPIC, partition)
        response = await self._replicas.append(
            ProduceParams(ALL_ACKS, COMMIT_TIMEOUT), {topic_partition: _batch_of(records)}
        )
        return response[topic_partition].error

    def read(self, partition: int) -> Iterator[Record]:
        """Return the records in this broker's replica, committed or not, the latest of a key last.

        Those that the digest of the replica has replaced are left out.
        """
        log = self._replicas.partitions.leader(TopicPartition(OFFSETS_TOPIC, partition)).log
        self._readers[partition] += 1
        try:
            yield from self._digest_of(partition, log).all_records()
        finally:
            self._readers[partition] -= 1

    async def _trim(self, index: int, partition: Partition, digest: GroupLogDigest) -> None:
        topic_partition = TopicPartition(OFFSETS_TOPIC, index)
        leader_epoch, start = partition.leader_epoch, digest.next_offset
        end = start
        for records, replaced_below in digest.records_in_use():
            end = replaced_below
            if records and await self.append(index, records) is not ErrorCode.none:
                return
            # What is appended in one leader epoch may be truncated in the next one.
            hosted = self._replicas.partitions.get(topic_partition)
            if hosted is not partition or partition.leader_epoch != leader_epoch:
                return
        # What has replaced a record has to be committed as well, and a load reads on where it has begun.
        if end <= partition.high_watermark and not self._readers[index]:
            await self._replicas.delete_records(0.0, {topic_partition: start})

    def _digest_of(self, index: int, log: PartitionLog) -> GroupLogDigest:
        digest = self._digests.get(index)
        if digest is None or not digest.is_of(log):
            digest = self._digests[index] = GroupLogDigest(log)
        return digest


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
