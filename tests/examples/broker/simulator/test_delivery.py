"""The delivery check: correct deliveries pass, wrong ones are detected."""

import pytest

from examples.broker.simulator.delivery import HEADER_BYTES, BatchIdentity, DeliveryCheck, DeliveryError
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition

EVENTS = TopicPartition("events", 3)
OTHER = TopicPartition("events", 4)


def identity(index: int, producer_id: int = 1) -> BatchIdentity:
    """Return the ``index``-th batch of ten records."""
    return BatchIdentity(producer_id, index * 10, 10, due_time=0.5)


def stored(index: int, offset: int, producer_id: int = 1) -> RecordBatch:
    return RecordBatch(10, identity(index, producer_id).encode(HEADER_BYTES), offset)


@pytest.fixture
def check() -> DeliveryCheck:
    """A check with three sent batches, none of them answered."""
    check = DeliveryCheck()
    for index in range(3):
        check.sent(EVENTS, identity(index))
    return check


def test_an_identity_survives_a_round_trip_through_a_batch() -> None:
    data = identity(7).encode(100)
    assert len(data) == 100
    assert BatchIdentity.decode(data) == identity(7)


@pytest.mark.parametrize("answers_first", [True, False])
def test_batches_acknowledged_and_consumed_once_in_order_pass(
    check: DeliveryCheck, answers_first: bool
) -> None:
    for index in range(3):
        if answers_first:
            check.acknowledged(EVENTS, identity(index), index * 10)
        assert check.consumed(EVENTS, stored(index, index * 10)) == identity(index)
        if not answers_first:
            check.acknowledged(EVENTS, identity(index), index * 10)
    check.check_complete()
    assert check.batches_consumed == 3


def test_producers_and_partitions_are_checked_separately() -> None:
    check = DeliveryCheck()
    for topic_partition in (EVENTS, OTHER):
        for producer_id in (1, 2):
            check.sent(topic_partition, identity(0, producer_id))
        check.consumed(topic_partition, stored(0, 0, producer_id=2))
        check.consumed(topic_partition, stored(0, 10, producer_id=1))
    check.check_complete()


@pytest.mark.parametrize("consumed", [True, False])
def test_a_failed_batch_may_be_consumed_or_not(check: DeliveryCheck, consumed: bool) -> None:
    check.failed(EVENTS, identity(0))
    offset = 0
    if consumed:
        check.consumed(EVENTS, stored(0, offset))
        offset += 10
    check.acknowledged(EVENTS, identity(1), offset)
    check.consumed(EVENTS, stored(1, offset))
    check.check_complete()


Step = tuple[str, int, int]
"""What happens: to which batch, at which offset."""


@pytest.mark.parametrize(
    ("before", "wrong", "complaint"),
    [
        ([("consumed", 0, 0)], ("consumed", 1, 20), r"partition events-3, offset 10: .* is at 20"),
        ([("consumed", 0, 0)], ("consumed", 0, 0), r"partition events-3, offset 10: .* is at 0"),
        (
            [("consumed", 0, 0)],
            ("consumed", 0, 10),
            r"offset 10: records 0\.\.9 of producer 1 .* second time",
        ),
        (
            [("consumed", 1, 0)],
            ("consumed", 0, 10),
            r"offset 10: records 0\.\.9 of producer 1 .* out of order",
        ),
        (
            [("acknowledged", 0, 0)],
            ("consumed", 1, 0),
            r"offset 0: the batch from record 0 .* never consumed",
        ),
        ([("consumed", 1, 0)], ("acknowledged", 0, 0), r"the batch from record 0 .* never consumed"),
        ([("acknowledged", 0, 10)], ("consumed", 0, 0), r"offset 0: .* were acknowledged at offset 10"),
        ([], ("consumed", 3, 0), "never sent"),
    ],
    ids=["gap", "offset twice", "stored twice", "order", "skipped", "late", "another offset", "not sent"],
)
def test_a_wrong_delivery_is_caught(
    check: DeliveryCheck, before: list[Step], wrong: Step, complaint: str
) -> None:
    def happens(what: str, index: int, offset: int) -> None:
        if what == "consumed":
            check.consumed(EVENTS, stored(index, offset))
        else:
            check.acknowledged(EVENTS, identity(index), offset)

    for step in before:
        happens(*step)
    with pytest.raises(DeliveryError, match=complaint):
        happens(*wrong)


def test_an_acknowledged_batch_that_is_still_missing_at_the_end_is_caught(check: DeliveryCheck) -> None:
    check.acknowledged(EVENTS, identity(2), 20)
    with pytest.raises(DeliveryError, match="partition events-3, offset 20: the batch from record 20"):
        check.check_complete()


def test_a_batch_with_fewer_records_than_were_sent_is_caught(check: DeliveryCheck) -> None:
    with pytest.raises(DeliveryError, match=r"9 records, not the records 0\.\.9"):
        check.consumed(EVENTS, RecordBatch(9, identity(0).encode(HEADER_BYTES), 0))
