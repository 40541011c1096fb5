"""The check of a log finds every fault of it, and accepts a repetition in a new producer epoch alone."""

import pytest

from examples.broker.storage.record_batch import ProducerSequence, RecordBatch
from tests.examples.broker.live.stored_once import find_faults

# What a batch holds: the epoch of producer 7, the sequence of the first number, and the numbers.
Batch = tuple[int, int, list[int]]
Acknowledged = dict[int, int | None]

NEW_EPOCH: list[Batch] = [(0, 0, [3, 5]), (1, 0, [5, 8])]
ONCE_MORE: list[Batch] = [(0, 0, [3]), (0, 1, [3])]
TWICE = "3 is stored 2 times in epoch (7, 0)"


def faults(held: list[Batch], acknowledged: Acknowledged, *, begins_new_epochs: bool) -> list[str]:
    numbers: list[int] = []
    batches: list[RecordBatch] = []
    for epoch, first, values in held:
        sequence = ProducerSequence(7, epoch, first, first + len(values) - 1)
        batches.append(RecordBatch(len(values), b"x", len(numbers), producer=sequence))
        numbers += values
    stored = dict(enumerate(numbers))
    return [*find_faults(stored, batches, acknowledged, begins_new_epochs=begins_new_epochs)]


@pytest.mark.parametrize(
    ("held", "acknowledged", "begins_new_epochs", "found"),
    [
        pytest.param([(0, 0, [3]), (0, 1, [5, 8])], {3: 0, 8: None}, False, [], id="each number once"),
        pytest.param(
            [(0, 0, [3, 5])],
            {5: 0, 8: None},
            False,
            ["5, acknowledged at 0, is at 1", "8, acknowledged at None, is at None"],
            id="an acknowledged number elsewhere",
        ),
        pytest.param([(0, 0, [5, 3])], {}, False, ["3 comes after 5"], id="out of order"),
        pytest.param(ONCE_MORE, {}, False, [TWICE], id="again under the next sequence"),
        pytest.param(ONCE_MORE, {}, True, [TWICE], id="again under the next sequence, beginning new epochs"),
        pytest.param(NEW_EPOCH, {3: 0, 5: 2}, True, [], id="again in a new epoch"),
        pytest.param(
            NEW_EPOCH,
            {},
            False,
            ["epoch (7, 1) begins at 2, after (7, 0)"],
            id="a new epoch of a client that begins none",
        ),
        pytest.param(
            NEW_EPOCH,
            {5: 1},
            True,
            ["5, acknowledged at 1, is at 2"],
            id="an acknowledged number again in a new epoch",
        ),
        pytest.param(
            [(0, 0, [3, 5]), (1, 0, [3, 8])],
            {},
            True,
            ["3 comes after 5"],
            id="a part of what is not acknowledged",
        ),
        pytest.param(
            [(1, 0, [3]), (0, 0, [5])],
            {},
            True,
            ["epoch (7, 0) begins at 1, after (7, 1)"],
            id="an earlier epoch after a later one",
        ),
    ],
)
def test_the_faults_of_a_log(
    held: list[Batch], acknowledged: Acknowledged, begins_new_epochs: bool, found: list[str]
) -> None:
    assert faults(held, acknowledged, begins_new_epochs=begins_new_epochs) == found


@pytest.mark.parametrize(("first", "count"), [(0, 2), (2, 1)])
@pytest.mark.parametrize("begins_new_epochs", [False, True])
def test_a_batch_that_does_not_continue_its_epoch_is_a_fault(
    first: int, count: int, begins_new_epochs: bool
) -> None:
    """And a batch that is stored again has its numbers twice, too."""
    number = 3 if first == 0 else 5
    assert len(faults([(0, 0, [3]), (0, first, [number])], {}, begins_new_epochs=begins_new_epochs)) == count
