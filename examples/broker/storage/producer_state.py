"""The idempotent producers of a log, and their latest batches."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.record_batch import NO_TIMESTAMP, ProducerSequence, RecordBatch

# An idempotent producer may have this many unanswered requests (max.in.flight.requests.per.connection), and
# each of them may be retried.
REMEMBERED_BATCHES: Final = 5
MAX_SEQUENCE: Final = 2**31 - 1


class KnownProducer(NamedTuple):
    """What a log knows of a producer. The timestamp is that of its latest batch; -1 without one."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int


class _Appended(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    last_offset: int = -1
    last_timestamp: int = NO_TIMESTAMP
    appended: deque[_Appended] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


class ProducerState:
    """The last batches of each producer id, which show a retry or a gap (Kafka's ProducerStateManager).

    The state is derived from the batches in the log alone, so that every replica has the same. A producer is
    dropped when its last record is deleted, so the size of the log bounds the size of the state.
    """

    __slots__ = ("_producers",)

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def __repr__(self) -> str:
        return f"<ProducerState of {len(self._producers)} producers>"

    def __len__(self) -> int:
        return len(self._producers)

    def known(self) -> list[KnownProducer]:
        """Return the producers of the log."""
        return [
            KnownProducer(
                producer_id, producer.epoch, producer.appended[-1].last_sequence, producer.last_timestamp
            )
            for producer_id, producer in self._producers.items()
        ]

    def check(self, sequence: ProducerSequence, log_start_offset: int) -> int | None:
        """Return the offset of a batch that is a retry, or None for the next batch of its producer.

        An unknown producer may begin at any sequence when records of the log were deleted, since they may
        have been its own. When no records were deleted, a sequence above 0 means that its first batch was
        lost with the previous leader (KAFKA-15591). Raises ApiError INVALID_PRODUCER_EPOCH for an epoch that
        a newer one has replaced, and OUT_OF_ORDER_SEQUENCE_NUMBER for a gap or for a producer or epoch that
        does not begin at 0.
        """
        producer = self._producers.get(sequence.producer_id)
        if producer is None:
            if log_start_offset > 0:
                return None
            expected = 0
        elif sequence.producer_epoch < producer.epoch:
            raise ApiError(
                ErrorCode.invalid_producer_epoch,
                f"{sequence} has an older epoch than {producer.epoch}, the producer's latest",
            )
        elif sequence.producer_epoch > producer.epoch:
            expected = 0
        else:
            for appended in producer.appended:
                if appended[:2] == (sequence.first_sequence, sequence.last_sequence):
                    return appended.base_offset
            expected = increment_sequence(producer.appended[-1].last_sequence)
        if sequence.first_sequence != expected:
            raise ApiError(
                ErrorCode.out_of_order_sequence_number,
                f"{sequence}, but the next sequence is {expected}",
            )
        return None

    def update(self, batch: RecordBatch) -> None:
        """Record a batch that was appended to the log."""
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
        producer.last_timestamp = batch.max_timestamp

    def drop_below(self, log_start_offset: int) -> None:
        """Drop the producers without a record at or above ``log_start_offset``."""
        removed = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.last_offset < log_start_offset
        ]
        for producer_id in removed:
            del self._producers[producer_id]

    def rebuild(self, batches: Iterable[RecordBatch]) -> None:
        """Derive the state from the remaining batches after a truncation, in O(batches)."""
        if self._producers:
            self._producers.clear()
            for batch in batches:
                self.update(batch)


def increment_sequence(sequence: int, count: int = 1) -> int:
    """Return the sequence ``count`` records later. 0 follows 2^31 - 1."""
    return (sequence + count) % (MAX_SEQUENCE + 1)
