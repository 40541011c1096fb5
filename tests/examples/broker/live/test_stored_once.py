"""The check of a log finds every fault of it, and accepts a repetition in a new producer epoch alone."""

import pytest

from examples.broker.storage.record_batch import ProducerSequence, RecordBatch
from tests.examples.broker.live.stored_once import find_faults

# What a batch holds: the epoch of producer 7, the sequence of the first number, and the numbers.
Batch = tuple[int, int, list[int]]
Acknowledged = dict[int, int | None]
# Logs whose producer begins no new epochs, with what is acknowledged, and the faults.
OF_ONE_EPOCH: dict[str, tuple[list[Batch], Acknowledged, list[str]]] = {
    "each number once": ([(0, 0, [3]), (0, 1, [5, 8])], {3: 0, 8: None}, []),
    "an acknowledged number elsewhere": ([(0, 0, [3, 5])], {5: 0}, ["5, acknowledged at 0, is at 1"]),
    "a lost number": ([(0, 0, [3])], {8: None}, ["8, acknowledged at None, is at None"]),
    "out of order": ([(0, 0, [5, 3])], {}, ["3 comes after 5"]),
    "twice": ([(0, 0, [3]), (0, 1, [3])], {}, ["3 is stored 2 times in epoch (7, 0)"]),
    "a new epoch": ([(0, 0, [3, 5]), (1, 0, [5])], {}, ["epoch (7, 1) begins at 2, after (7, 0)"]),
}
# Logs whose producer may begin new epochs.
OF_NEW_EPOCHS: dict[str, tuple[list[Batch], Acknowledged, list[str]]] = {
    "again in a new epoch": ([(0, 0, [3, 5]), (1, 0, [5, 8])], {3: 0, 5: 2}, []),
    "twice": OF_ONE_EPOCH["twice"],
    "an acknowledged number again": (
        [(0, 0, [3, 5]), (1, 0, [5, 8])],
        {5: 1},
        ["5, acknowledged at 1, is at 2"],
    ),
    "not all of it again": ([(0, 0, [3, 5]), (1, 0, [3, 8])], {}, ["3 comes after 5"]),
    "an earlier epoch": ([(1, 0, [3]), (0, 0, [5])], {}, ["epoch (7, 0) begins at 1, after (7, 1)"]),
}


def faults(held: list[Batch], acknowledged: Acknowledged, *, begins_new_epochs: bool) -> list[str]:
    numbers: list[int] = []
    batches: list[RecordBatch] = []
    for epoch, first, values in held:
        sequence = ProducerSequence(7, epoch, first, first + len(values) - 1)
        batches.append(RecordBatch(len(values), b"x", len(numbers), producer=sequence))
        numbers += values
    stored = dict(enumerate(numbers))
    return [*find_faults(stored, batches, acknowledged, begins_new_epochs=begins_new_epochs)]


@pytest.mark.parametrize(("held", "acknowledged", "found"), OF_ONE_EPOCH.values(), ids=OF_ONE_EPOCH)
def test_the_faults_of_one_epoch(held: list[Batch], acknowledged: Acknowledged, found: list[str]) -> None:
    assert faults(held, acknowledged, begins_new_epochs=False) == found


@pytest.mark.parametrize(("held", "acknowledged", "found"), OF_NEW_EPOCHS.values(), ids=OF_NEW_EPOCHS)
def test_the_faults_of_new_epochs(held: list[Batch], acknowledged: Acknowledged, found: list[str]) -> None:
    assert faults(held, acknowledged, begins_new_epochs=True) == found


@pytest.mark.parametrize("first", [0, 2])
def test_a_batch_that_does_not_continue_its_epoch_is_a_fault(first: int) -> None:
    assert len(faults([(0, 0, [3]), (0, first, [5])], {}, begins_new_epochs=True)) == 1
