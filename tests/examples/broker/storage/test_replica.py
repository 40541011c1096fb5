"""What a follower truncates, and what it commits again."""

import pytest

from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.replica import Replica
from tests.examples.broker.leader_broker import TOPIC_ID


@pytest.fixture
def replica() -> Replica:
    """Three batches of ten records, of which the first one is committed."""
    replica = Replica(TOPIC_ID, 100)
    replica.append_as_follower([RecordBatch(10, b"x").at(offset, 0) for offset in (0, 10, 20)], 10, 0)
    return replica


@pytest.mark.parametrize(("offset", "high_watermark"), [(30, 10), (20, 10), (10, 10), (0, 0)])
def test_a_truncation_moves_the_high_watermark_back_to_the_new_end_only(
    replica: Replica, offset: int, high_watermark: int
) -> None:
    replica.truncate_to(offset)
    assert (replica.log.log_end_offset, replica.high_watermark) == (offset, high_watermark)


@pytest.mark.parametrize(
    ("leader", "own"),
    [((0, 20), (0, 20, 10)), ((0, 5), (0, 0, 0)), ((40, 50), (40, 40, 40)), ((30, 50), (0, 30, 10))],
    ids=["past its end", "far past its end", "below its start", "in range"],
)
def test_a_replica_returns_to_the_range_of_its_leaders_log(
    replica: Replica, leader: tuple[int, int], own: tuple[int, int, int]
) -> None:
    replica.return_to_range(*leader)
    log = replica.log
    assert (log.log_start_offset, log.log_end_offset, replica.high_watermark) == own
