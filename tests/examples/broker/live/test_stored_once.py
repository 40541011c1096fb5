"""The check of a log finds every fault of it, and accepts a repetition in a new producer epoch alone."""

import pytest

from examples.broker.storage.record_batch import ProducerSequence, RecordBatch
from tests.examples.broker.live.stored_once import find_faults

# What a batch holds: the epoch of producer 7, the sequence of the first number, and the numbers.
Batch = tuple[int, int, list[int]]


def faults(
    *held: Batch, acknowledged: dict[int, int | None] | None = None, begins_new_epochs: bool = False
) -> list[str]:
    numbers: list[int] = []
    batches: list[RecordBatch] = []
    for epoch, first, values in held:
        sequence = ProducerSequence(7, epoch, first, first + len(values) - 1)
        batches.append(RecordBatch(len(values), b"x", len(numbers), producer=sequence))
        numbers += values
    stored = dict(enumerate(numbers))
    return [*find_faults(stored, batches, acknowledged or {}, begins_new_epochs=begins_new_epochs)]


def test_a_log_with_each_number_once_has_no_fault() -> None:
    assert not faults((0, 0, [3]), (0, 1, [5, 8]), acknowledged={3: 0, 8: None})


def test_an_acknowledged_number_has_to_be_where_it_was_acknowledged() -> None:
    assert faults((0, 0, [3, 5]), acknowledged={5: 0, 8: None}) == [
        "5, acknowledged at 0, is at 1",
        "8, acknowledged at None, is at None",
    ]


def test_the_numbers_have_to_be_in_order() -> None:
    assert faults((0, 0, [5, 3])) == ["3 comes after 5"]


def test_a_repetition_of_a_batch_is_a_fault() -> None:
    for begins_new_epochs in (False, True):
        assert len(faults((0, 0, [3]), (0, 0, [3]), begins_new_epochs=begins_new_epochs)) == 2


def test_a_repetition_under_the_next_sequence_is_a_fault() -> None:
    for begins_new_epochs in (False, True):
        assert faults((0, 0, [3]), (0, 1, [3]), begins_new_epochs=begins_new_epochs) == [
            "3 is stored 2 times in epoch (7, 0)"
        ]


def test_a_repetition_in_a_new_epoch_is_a_fault_of_a_client_that_begins_none() -> None:
    repeated: tuple[Batch, ...] = ((0, 0, [3, 5]), (1, 0, [5, 8]))
    assert not faults(*repeated, acknowledged={3: 0, 5: 2}, begins_new_epochs=True)
    assert faults(*repeated) == ["epoch (7, 1) begins at 2, after (7, 0)"]


def test_in_a_new_epoch_only_what_is_not_acknowledged_is_repeated() -> None:
    assert faults((0, 0, [3, 5]), (1, 0, [5, 8]), acknowledged={5: 1}, begins_new_epochs=True) == [
        "5, acknowledged at 1, is at 2"
    ]


def test_in_a_new_epoch_all_is_repeated_from_the_first_number_on() -> None:
    assert faults((0, 0, [3, 5]), (1, 0, [3, 8]), begins_new_epochs=True) == ["3 comes after 5"]


@pytest.mark.parametrize("first", [0, 2])
def test_a_batch_that_does_not_continue_its_epoch_is_a_fault(first: int) -> None:
    assert len(faults((0, 0, [3]), (0, first, [5]), begins_new_epochs=True)) == 1


def test_an_earlier_epoch_does_not_come_after_a_later_one() -> None:
    assert faults((1, 0, [3]), (0, 0, [5]), begins_new_epochs=True) == [
        "epoch (7, 0) begins at 1, after (7, 1)"
    ]
