"""What a replica of ``__consumer_offsets`` holds, without the records that later ones replace."""

from collections.abc import Iterator
from typing import Final

from examples.broker.group.group_log import Record
from examples.broker.replication.partition import Partition
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.segment import LogOffsetMetadata
from examples.broker.storage.wire_batch import keys_and_values

# Bytes that are read at a time.
_READ_AHEAD: Final = 1 << 16


class GroupLogDigest:
    """The latest record of each key among those below ``next_offset`` of one replica. They are committed.

    Kafka compacts the log. Here the log stays as it is, and a digest grows with it. So a broker that takes
    over the groups reads as many records as are in use, however many there were.
    """

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._start_offset = self.next_offset = log.log_start_offset
        self._latest: dict[bytes, bytes] = {}

    def __repr__(self) -> str:
        return f"<GroupLogDigest of {len(self._latest)} keys below {self.next_offset} in {self._log!r}>"

    def is_of(self, log: PartitionLog) -> bool:
        """Whether this log has all that was read, and nothing of it was deleted."""
        return (
            self._log is log
            and self._start_offset == log.log_start_offset
            and self.next_offset <= log.log_end_offset
        )

    def read_on(self, partition: Partition) -> Iterator[None]:
        """Read what was committed since, one record at each step."""
        for batch in self._batches(self.next_offset, partition.local.high_watermark_metadata):
            for key, value in _records(batch):
                if value is None:
                    self._latest.pop(key, None)
                else:
                    self._latest[key] = value
                yield
            self.next_offset = batch.next_offset

    def all_records(self) -> Iterator[Record]:
        """Return the latest record of each key, and all records after them to the end of the log.

        Both are as of the first step: the digest may read on between two steps.
        """
        rest = self._batches(self.next_offset, self._log.log_end_offset_metadata)
        yield from list(self._latest.items())
        for batch in rest:
            yield from _records(batch)

    def _batches(self, offset: int, end: LogOffsetMetadata) -> Iterator[RecordBatch]:
        # Between two steps, a follower may begin its log anew.
        while offset < min(end.message_offset, self._log.log_end_offset) and self.is_of(self._log):
            for batch in self._log.read(offset, _READ_AHEAD, end).batches:
                yield batch
                offset = batch.next_offset


def _records(batch: RecordBatch) -> Iterator[Record]:
    for key, value in keys_and_values(batch.data):
        yield key or b"", value
