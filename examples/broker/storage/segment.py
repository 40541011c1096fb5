"""Log segments, which store the record batches."""

from bisect import bisect_right
from collections.abc import Sequence

from examples.broker.storage.record_batch import NO_TIMESTAMP, RecordBatch


class LogSegment:
    """Consecutive batches from ``base_offset`` on. To find an offset costs O(log batches).

    Positions are in bytes. They count on from one segment to the next, so that the bytes between two offsets
    are known without a read.
    """

    __slots__ = ("_base_offsets", "_batches", "_positions", "base_offset")

    def __init__(self, base_offset: int, base_position: int = 0) -> None:
        self.base_offset = base_offset
        self._batches: list[RecordBatch] = []
        self._base_offsets: list[int] = []
        # The start position of each batch, and last the position of the next batch.
        self._positions: list[int] = [base_position]

    def __repr__(self) -> str:
        return f"<LogSegment {self.base_offset}..{self.next_offset} {self.size_in_bytes} bytes>"

    @property
    def size_in_bytes(self) -> int:
        return self._positions[-1] - self._positions[0]

    @property
    def batches(self) -> Sequence[RecordBatch]:
        return self._batches

    @property
    def next_offset(self) -> int:
        return self._batches[-1].next_offset if self._batches else self.base_offset

    @property
    def next_position(self) -> int:
        return self._positions[-1]

    @property
    def max_timestamp(self) -> int:
        """The latest timestamp of a record, in O(batches); NO_TIMESTAMP if none has one."""
        return max((batch.max_timestamp for batch in self._batches), default=NO_TIMESTAMP)

    def append(self, batch: RecordBatch) -> None:
        self._batches.append(batch)
        self._base_offsets.append(batch.base_offset)
        self._positions.append(self._positions[-1] + batch.size_in_bytes)

    def position_of(self, offset: int) -> int:
        """Return the position of the batch that contains ``offset``."""
        return self._positions[self._index_of(offset)]

    def read(
        self, offset: int, max_bytes: int, upper_bound: int, *, min_one_batch: bool
    ) -> tuple[RecordBatch, ...]:
        """Return whole batches from the one that contains ``offset`` on; see ``PartitionLog.read``."""
        first = self._index_of(offset)
        stop = bisect_right(self._positions, self._positions[first] + max_bytes) - 1
        if upper_bound < self.next_offset:
            stop = min(stop, self._index_of(upper_bound))
        if min_one_batch:
            stop = max(stop, first + 1)
        return tuple(self._batches[first:stop])

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that contains ``offset``, and all batches after it."""
        index = self._index_of(offset)
        del self._batches[index:], self._base_offsets[index:], self._positions[index + 1 :]

    def _index_of(self, offset: int) -> int:
        return bisect_right(self._base_offsets, offset) - 1
