"""What a replica of ``__consumer_offsets`` holds, without the records that later ones replace."""

from collections.abc import Iterator
from typing import Final

from examples.broker.group.group_log import Record
from examples.broker.replication.partition import Partition
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.wire_batch import keys_and_values

# Bytes that are read at a time.
_READ_AHEAD: Final = 1 << 16
# Bytes of records that are written again at a time. The first one may be larger.
_PIECE: Final = 1 << 14


class GroupLogDigest:
    """The latest record of each key among those below ``next_offset`` of one replica. They are committed.

    A broker that takes over the groups reads it, and so as many records as are in use, however many there
    were. ``size_in_bytes`` is that of its keys and values.
    """

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self.next_offset = log.log_start_offset
        self.size_in_bytes = 0
        self._latest: dict[bytes, bytes] = {}

    def __repr__(self) -> str:
        return f"<GroupLogDigest of {len(self._latest)} keys below {self.next_offset} in {self._log!r}>"

    def is_of(self, log: PartitionLog) -> bool:
        """Whether this log has the same latest records below ``next_offset``, and still has the next one.

        What is deleted from its start was replaced by later records (see ``ReplicatedGroupLog.trim``).
        """
        return self._log is log and log.log_start_offset <= self.next_offset <= log.log_end_offset

    def read_on(self, partition: Partition) -> Iterator[None]:
        """Read what was committed since, one record at each step."""
        for batch in self._batches(self.next_offset, partition.high_watermark):
            for key, value in _records(batch):
                self._replace(key, value)
                yield
            # A follower may have begun its log anew, above its end. Then this digest is of no use any more.
            if not self.is_of(self._log):
                return
            self.next_offset = batch.next_offset

    def all_records(self) -> Iterator[Record]:
        """Return the latest record of each key, and all records after them to the end of the log.

        Both are as of the first step: the digest may read on between two steps.
        """
        rest = self._batches(self.next_offset, self._log.log_end_offset)
        yield from list(self._latest.items())
        for batch in rest:
            yield from _records(batch)

    def records_in_use(self) -> Iterator[tuple[list[Record], int]]:
        """Return the records that nothing in the log replaces, some at each step.

        Also return the end of the log, as of that step. What is appended between two steps counts as well.
        """
        replaced: set[bytes] = set()
        end = self.next_offset
        for piece in _pieces(list(self._latest.items())):
            for batch in self._batches(end, self._log.log_end_offset):
                replaced.update(key for key, _ in _records(batch))
                end = batch.next_offset
            yield [record for record in piece if record[0] not in replaced], end

    def _replace(self, key: bytes, value: bytes | None) -> None:
        before = self._latest.get(key)
        if before is not None:
            self.size_in_bytes -= len(key) + len(before)
        if value is not None:
            self._latest[key] = value
            self.size_in_bytes += len(key) + len(value)
        elif before is not None:
            del self._latest[key]

    def _batches(self, offset: int, end: int) -> Iterator[RecordBatch]:
        # Between two steps, a follower may begin its log anew.
        while offset < min(end, self._log.log_end_offset) and self.is_of(self._log):
            for batch in self._log.read(offset, _READ_AHEAD, end):
                yield batch
                offset = batch.next_offset


def _pieces(entries: list[tuple[bytes, bytes]]) -> Iterator[list[Record]]:
    """Return the entries in lists of ``_PIECE`` bytes. They are removed one by one; see ``load``."""
    piece: list[Record] = []
    size = 0
    while entries:
        key, value = entries.pop()
        size += len(key) + len(value)
        if piece and size > _PIECE:
            yield piece
            piece, size = [], len(key) + len(value)
        piece.append((key, value))
    if piece:
        yield piece


def _records(batch: RecordBatch) -> Iterator[Record]:
    for key, value in keys_and_values(batch.data):
        yield key or b"", value
