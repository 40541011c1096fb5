"""The next sequence of an idempotent producer, which a log derives from its batches alone."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.producer_state import MAX_SEQUENCE, REMEMBERED_BATCHES, increment_sequence
from examples.broker.storage.record_batch import ProducerSequence, RecordBatch

PRODUCER = 7


def batch(first: int, last: int | None = None, *, epoch: int = 0, producer: int = PRODUCER) -> RecordBatch:
    last = first if last is None else last
    sequence = ProducerSequence(producer, epoch, first, last)
    count = (last - first) % (MAX_SEQUENCE + 1) + 1
    return RecordBatch(count, b"x" * 10, producer=sequence)


@pytest.fixture
def log() -> PartitionLog:
    return PartitionLog(50)


def refusal(log: PartitionLog, batch: RecordBatch) -> ErrorCode:
    end = log.log_end_offset
    with pytest.raises(ApiError) as refused:
        log.append_as_leader(batch)
    assert log.log_end_offset == end
    return refused.value.code


def test_a_gap_and_a_part_of_a_batch_are_out_of_order(log: PartitionLog) -> None:
    log.append_as_leader(batch(0, 4))
    for sent in (batch(6), batch(0, 3)):
        assert refusal(log, sent) is ErrorCode.out_of_order_sequence_number


def test_an_unknown_producer_may_begin_anywhere_after_a_deletion(log: PartitionLog) -> None:
    assert refusal(log, batch(1_000)) is ErrorCode.out_of_order_sequence_number
    log.append_as_leader(RecordBatch(1, b"of another"))
    log.increment_log_start_offset(1)
    assert log.append_as_leader(batch(1_000)) == 1


def test_a_new_epoch_begins_at_0_and_fences_the_one_before(log: PartitionLog) -> None:
    log.append_as_leader(batch(0, 4))
    assert refusal(log, batch(5, epoch=1)) is ErrorCode.out_of_order_sequence_number
    assert log.append_as_leader(batch(0, 4, epoch=1)) == 5
    assert refusal(log, batch(5)) is ErrorCode.invalid_producer_epoch


def test_after_the_largest_sequence_comes_0(log: PartitionLog) -> None:
    assert increment_sequence(MAX_SEQUENCE) == 0
    log.truncate_fully_and_start_at(10)
    log.append_as_leader(batch(MAX_SEQUENCE - 1, 1))
    assert log.log_end_offset == 14
    assert log.append_as_leader(batch(2)) == 14


def test_a_truncation_drops_only_the_state_of_truncated_batches(log: PartitionLog) -> None:
    for sequence in range(4):
        log.append_as_leader(batch(sequence))
    log.truncate_to(2)
    assert refusal(log, batch(3)) is ErrorCode.out_of_order_sequence_number
    assert [log.append_as_leader(batch(sequence)) for sequence in (1, 2)] == [1, 2]


def test_a_producer_is_dropped_with_the_last_of_its_records(log: PartitionLog) -> None:
    log.append_as_leader(batch(0))
    log.append_as_leader(batch(0, producer=8))
    log.increment_log_start_offset(1)
    assert log.append_as_leader(batch(100)) == 2
    assert refusal(log, batch(100, producer=8)) is ErrorCode.out_of_order_sequence_number


class IdempotentProducersMachine(RuleBasedStateMachine):
    """Two producers send next batches and retries. A second log replicates, and is sometimes truncated."""

    def __init__(self) -> None:
        super().__init__()
        self.leader, self.follower = PartitionLog(50), PartitionLog(50)

    def sequences(self, log: PartitionLog, producer: int) -> list[int]:
        return [
            b.producer.first_sequence
            for b in log.batches()
            if b.producer and b.producer.producer_id == producer
        ]

    @rule(producer=st.sampled_from([7, 8]), back=st.integers(-1, 7))
    def send(self, producer: int, back: int) -> None:
        sent = self.sequences(self.leader, producer)
        first = sent[-1] + 1 - back if sent else 0
        before = self.leader.log_end_offset
        try:
            offset = self.leader.append_as_leader(batch(max(first, 0), producer=producer))
        except ApiError:
            assert back < 0 or back > REMEMBERED_BATCHES
            return
        if first in sent:
            assert self.leader.log_end_offset == before
            assert list(self.leader.batches())[offset].producer == ProducerSequence(producer, 0, first, first)

    @rule(count=st.integers(1, 5))
    def replicate(self, count: int) -> None:
        for stored in list(self.leader.batches())[self.follower.log_end_offset :][:count]:
            self.follower.append_as_follower(stored)

    @rule(data=st.data())
    def cut_the_follower(self, data: st.DataObject) -> None:
        self.follower.truncate_to(data.draw(st.integers(0, self.follower.log_end_offset)))

    @rule()
    def change_places(self) -> None:
        self.leader, self.follower = self.follower, self.leader
        self.follower.truncate_to(self.leader.log_end_offset)
        kept = zip(self.leader.batches(), self.follower.batches(), strict=False)
        self.follower.truncate_to(sum(1 for one, other in kept if one == other))

    @invariant()
    def no_log_has_a_record_twice_or_a_gap(self) -> None:
        for log in (self.leader, self.follower):
            for producer in (7, 8):
                sequences = self.sequences(log, producer)
                assert sequences == list(range(len(sequences)))


TestIdempotentProducers = IdempotentProducersMachine.TestCase
TestIdempotentProducers.settings = settings(stateful_step_count=40)
