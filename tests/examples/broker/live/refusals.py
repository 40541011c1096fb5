"""The batches that leaders refuse as out of order, by whether the log gives a reason."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.record_batch import ProducerSequence, RecordBatch


class Refusals:
    """``gaps`` has the refusals for which the log lacks the batch before, ``unfounded`` all others."""

    def __init__(self) -> None:
        self.gaps: list[str] = []
        self.unfounded: list[str] = []

    @classmethod
    @contextmanager
    def observed(cls) -> Iterator[Self]:
        """Observe every leader of this process until the block ends."""
        refusals = cls()
        append = PartitionLog.append_as_leader

        def observe(log: PartitionLog, batch: RecordBatch, leader_epoch: int = 0) -> int:
            try:
                return append(log, batch, leader_epoch)
            except ApiError as error:
                if error.code is ErrorCode.out_of_order_sequence_number and batch.producer is not None:
                    kind = refusals.gaps if _is_after_gap(log, batch.producer) else refusals.unfounded
                    kind.append(f"{batch.producer} was refused by {log!r}: {error}")
                raise

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PartitionLog, "append_as_leader", observe)
            yield refusals


def _is_after_gap(log: PartitionLog, refused: ProducerSequence) -> bool:
    """Read the log itself, and not the state that the log keeps of its producers."""
    following = 0
    for batch in log.batches():
        stored = batch.producer
        if stored is not None and (stored.producer_id, stored.producer_epoch) == (
            refused.producer_id,
            refused.producer_epoch,
        ):
            following = stored.last_sequence + 1
    return refused.first_sequence > following
