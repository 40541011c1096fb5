"""The group coordinator's log: the partitions of ``__consumer_offsets``."""

import io
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from examples.broker.controller.cluster_defaults import OFFSETS_TOPIC
from examples.broker.errors import ErrorCode
from examples.broker.replication.produce import ALL_ACKS, ProduceParams
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition

# Kafka's offsets.commit.timeout.ms.
COMMIT_TIMEOUT: Final = 5.0
_NO_PRODUCER: Final = -1


class ReplicatedGroupLog:
    """The ``GroupLog`` of a broker. It appends as a producer with acks=all, and reads its own replica.

    An append is a ``DelayedProduce``: a commit succeeds once all in-sync replicas have it, so that another
    broker can take over the group (kafka.coordinator.group.GroupMetadataManager).
    """

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    async def append(self, partition: int, records: Sequence[tuple[bytes, bytes | None]]) -> ErrorCode:
        topic_partition = TopicPartition(OFFSETS_TOPIC, partition)
        response = await self._replicas.append(
            ProduceParams(ALL_ACKS, COMMIT_TIMEOUT), {topic_partition: _batch_of(records)}
        )
        return response[topic_partition].error

    def read(self, partition: int) -> Iterator[tuple[bytes, bytes | None]]:
        """Return all records in this broker's replica, committed or not, the oldest first."""
        for batch in self._replicas.partitions.leader(TopicPartition(OFFSETS_TOPIC, partition)).log.batches():
            for record in read_batch(batch.data, 0)[0].records:
                yield record.key or b"", record.value


def _batch_of(records: Sequence[tuple[bytes, bytes | None]]) -> WireRecordBatch:
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
                Record(attributes=i8(0), timestamp=now, offset=i64(index), key=key, value=value, headers=())
                for index, (key, value) in enumerate(records)
            ),
        ),
    )
    return WireRecordBatch.parse(buffer.getvalue())
