"""Which leader appended what: where each leader's records begin."""

from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

NO_EPOCH: Final = -1


class EpochEndOffset(NamedTuple):
    """An epoch, and the offset behind the last record its leader appended; -1 and -1 when not known."""

    epoch: int
    end_offset: int


UNKNOWN_EPOCH_END: Final = EpochEndOffset(NO_EPOCH, -1)


class LeaderEpochs:
    """The start offset of each leader epoch in a log (Kafka's LeaderEpochFileCache).

    Two logs agree up to the end of the last epoch both have, as offsets alone cannot tell (KIP-101, KIP-279).
    Epochs and their starts both grow. Every call is O(log epochs), but for those that drop some.
    """

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = NO_EPOCH

    def __repr__(self) -> str:
        return f"<LeaderEpochs {dict(self.entries())}>"

    def entries(self) -> list[tuple[int, int]]:
        """Each epoch with its start offset, oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """From ``start_offset`` on, records belong to ``epoch``. No effect unless it is the newest so far.

        An epoch that began there, or later, has got no record into the log, and is forgotten.
        """
        if epoch > self.latest:
            self.truncate_from_end(start_offset)
            self._epochs.append(epoch)
            self._starts.append(start_offset)
            self.latest = epoch

    def epoch_at(self, offset: int) -> int:
        """The epoch a record at ``offset`` belongs to; -1 before the first known."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The largest known epoch not past ``epoch``, and where it ends.

        An epoch newer than all that are known gives ``UNKNOWN_EPOCH_END``; one older than all gives itself,
        ending where the first known begins.
        """
        if epoch == self.latest != NO_EPOCH:
            return EpochEndOffset(epoch, log_end_offset)
        next_index = bisect_right(self._epochs, epoch)
        if epoch < 0 or next_index == len(self._epochs):
            return UNKNOWN_EPOCH_END
        known = self._epochs[next_index - 1] if next_index else epoch
        return EpochEndOffset(known, self._starts[next_index])

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends at ``end_offset``: forget the epochs that begin there or later."""
        index = bisect_left(self._starts, end_offset)
        del self._epochs[index:], self._starts[index:]
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at ``start_offset``: forget the epochs that end there or earlier."""
        index = bisect_right(self._starts, start_offset) - 1
        if index >= 0:
            del self._epochs[:index], self._starts[:index]
            self._starts[0] = start_offset

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
        self.latest = NO_EPOCH
