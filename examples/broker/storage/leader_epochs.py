"""The start offset of each leader epoch in a log."""

from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

NO_EPOCH: Final = -1


class EpochEndOffset(NamedTuple):
    """A leader epoch and the offset after the last record of that epoch; -1 and -1 when it is unknown."""

    epoch: int
    end_offset: int


UNKNOWN_EPOCH_END: Final = EpochEndOffset(NO_EPOCH, -1)


class LeaderEpochs:
    """The start offset of each leader epoch in a log (Kafka's LeaderEpochFileCache).

    Two logs agree up to the end of the last epoch that both have; offsets alone cannot show this (KIP-101,
    KIP-279). Epochs and their start offsets both grow. Every call costs O(log epochs), except the calls that
    drop epochs.
    """

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = NO_EPOCH

    def __repr__(self) -> str:
        return f"<LeaderEpochs {dict(self.entries())}>"

    def entries(self) -> list[tuple[int, int]]:
        """Return each epoch with its start offset, oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Assign the records from ``start_offset`` on to ``epoch``, if it is newer than every known epoch.

        An epoch that began at that offset or later has no record in the log, and is dropped.
        """
        if epoch > self.latest:
            self.truncate_from_end(start_offset)
            self._epochs.append(epoch)
            self._starts.append(start_offset)
            self.latest = epoch

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record at ``offset``; -1 before the first known epoch."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """Return the largest known epoch that is at most ``epoch``, and its end offset.

        For an epoch newer than every known one it is ``UNKNOWN_EPOCH_END``. An epoch older than every known
        one is returned itself, with the start of the first known epoch as its end.
        """
        if epoch == self.latest != NO_EPOCH:
            return EpochEndOffset(epoch, log_end_offset)
        next_index = bisect_right(self._epochs, epoch)
        if epoch < 0 or next_index == len(self._epochs):
            return UNKNOWN_EPOCH_END
        known = self._epochs[next_index - 1] if next_index else epoch
        return EpochEndOffset(known, self._starts[next_index])

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at ``end_offset`` or later: the log now ends there."""
        index = bisect_left(self._starts, end_offset)
        del self._epochs[index:], self._starts[index:]
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that end at ``start_offset`` or earlier: the log now starts there."""
        index = bisect_right(self._starts, start_offset) - 1
        if index >= 0:
            del self._epochs[:index], self._starts[:index]
            self._starts[0] = start_offset

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
        self.latest = NO_EPOCH
