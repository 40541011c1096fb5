"""A refusal is founded only when the log lacks the batch before the refused one."""

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.producer_state import ProducerState
from examples.broker.storage.record_batch import ProducerSequence, RecordBatch
from tests.examples.broker.live.refusals import Refusals


def batch(sequence: int, epoch: int = 0) -> RecordBatch:
    return RecordBatch(1, b"x", producer=ProducerSequence(7, epoch, sequence, sequence))


def append_refused(log: PartitionLog, refused: RecordBatch) -> None:
    with pytest.raises(ApiError, check=lambda error: error.code is ErrorCode.out_of_order_sequence_number):
        log.append_as_leader(refused)


def test_a_batch_after_a_missing_one_is_refused_for_a_gap() -> None:
    log = PartitionLog(100)
    with Refusals.observed() as refusals:
        log.append_as_leader(batch(0))
        log.append_as_leader(batch(0))
        append_refused(log, batch(2))
        append_refused(log, batch(1, epoch=1))
    append_refused(log, batch(3))
    assert (len(refusals.gaps), refusals.unfounded) == (2, [])


@pytest.mark.parametrize("sequence", [0, 1])
def test_the_refusal_of_a_stored_batch_or_of_the_next_one_is_unfounded(
    monkeypatch: pytest.MonkeyPatch, sequence: int
) -> None:
    log = PartitionLog(100)
    log.append_as_leader(batch(0))

    def refuse(*args: object) -> None:
        raise ApiError(ErrorCode.out_of_order_sequence_number, "for no reason")

    monkeypatch.setattr(ProducerState, "check", refuse)
    with Refusals.observed() as refusals:
        append_refused(log, batch(sequence))
    assert (refusals.gaps, len(refusals.unfounded)) == ([], 1)
