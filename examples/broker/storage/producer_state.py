"""What a log knows of the idempotent producers that write to it."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.record_batch import ProducerSequence, RecordBatch

# As many as a producer may have unanswered (max.in.flight.requests.per.connection with idempotence), so that
# a retry of any of them is known.
REMEMBERED_BATCHES: Final = 5
MAX_SEQUENCE: Final = 2**31 - 1


class _Appended(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    last_offset: int = -1
    appended: deque[_Appended] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


class ProducerState:
    """The last batches of each producer id: what tells a retry, and a gap (Kafka's ProducerStateManager).

    It follows from the batches in the log and from nothing else, so that every replica has it. Producers are
    forgotten with the last of their records: what is kept is bounded by what the log holds.
    """

    __slots__ = ("_producers",)

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def __repr__(self) -> str:
        return f"<ProducerState of {len(self._producers)} producers>"

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, sequence: ProducerSequence, log_start_offset: int) -> int | None:
        """Where these records lie if they are here already, as a retry's are; None when they come next.

        A producer that is not known may begin anywhere in a log that has given up records, since those may
        have been its own. In a log that has not, its first batch is missing, lost with the leader before
        (KAFKA-15591). ApiError INVALID_PRODUCER_EPOCH for an epoch that has been replaced,
        OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, or a producer or epoch that does not begin at 0.
        """
        producer = self._producers.get(sequence.producer_id)
        if producer is None:
            if log_start_offset > 0:
                return None
            expected = 0
        elif sequence.producer_epoch < producer.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"{sequence} comes after epoch {producer.epoch}",
            )
        elif sequence.producer_epoch > producer.epoch:
            expected = 0
        else:
            for appended in producer.appended:
                if appended[:2] == (sequence.first_sequence, sequence.last_sequence):
                    return appended.base_offset
            expected = following(producer.appended[-1].last_sequence)
        if sequence.first_sequence != expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{sequence} comes where {expected} is next",
            )
        return None

    def update(self, batch: RecordBatch) -> None:
        """Learn from a batch that is in the log now."""
        sequence = batch.producer
        if sequence is None:
            return
        producer = self._producers.get(sequence.producer_id)
        if producer is None or producer.epoch != sequence.producer_epoch:
            producer = self._producers[sequence.producer_id] = _Producer(sequence.producer_epoch)
        producer.appended.append(
            _Appended(sequence.first_sequence, sequence.last_sequence, batch.base_offset)
        )
        producer.last_offset = batch.next_offset - 1

    def forget_below(self, log_start_offset: int) -> None:
        """Drop the producers that have no record left, now that the log starts there."""
        gone = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.last_offset < log_start_offset
        ]
        for producer_id in gone:
            del self._producers[producer_id]

    def rebuild(self, batches: Iterable[RecordBatch]) -> None:
        """After a truncation: what follows from the batches that are left, in O(batches)."""
        if self._producers:
            self._producers.clear()
            for batch in batches:
                self.update(batch)


def following(sequence: int, count: int = 1) -> int:
    """The sequence ``count`` records on; after 2^31 - 1 comes 0."""
    return (sequence + count) % (MAX_SEQUENCE + 1)
