"""Becoming leader or follower, and leader epochs."""

from dataclasses import replace

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.metadata import PartitionState
from examples.broker.replication.partition import Partition
from examples.broker.replication.requests import PartitionFetch, PartitionFetched
from examples.broker.storage.leader_epochs import EpochEndOffset
from examples.broker.storage.record_batch import ProducerSequence, RecordBatch
from tests.examples.broker.replication.one_partition import (
    BATCH,
    FIRST,
    OTHER,
    SELF,
    THIRD,
    append,
    fetched,
    follower,
    leader,
    refusal,
)


def numbered(sequence: int, epoch: int = 0) -> RecordBatch:
    return RecordBatch(1, b"x", producer=ProducerSequence(7, epoch, sequence, sequence))


def append_numbered(p: Partition, sequence: int, epoch: int = 0) -> int:
    return p.append_as_leader(numbered(sequence, epoch), acks_all=True)


def read(p: Partition, offset: int, last_fetched_epoch: int = -1) -> PartitionFetched:
    wanted = PartitionFetch(offset, last_fetched_epoch=last_fetched_epoch)
    return p.read(wanted, 1_000, from_follower=True, min_one_batch=True)


@pytest.mark.parametrize(
    "stale",
    [FIRST, replace(FIRST, leader=OTHER), replace(FIRST, in_sync=(SELF,)), FIRST.led_by(OTHER)],
)
def test_a_state_that_is_not_newer_changes_nothing(stale: PartitionState) -> None:
    newest = FIRST.with_in_sync((SELF, OTHER))
    p = leader()
    p.make_leader(newest, now=0)
    p.make_leader(stale, now=0)
    p.make_follower(stale)
    assert (p.state, p.is_leader) == (newest, True)


def test_in_a_new_leader_epoch_the_high_watermark_waits_for_the_followers() -> None:
    p = leader()
    append(p)
    append(p)
    for replica_id in (OTHER, THIRD):
        fetched(p, replica_id, 10)
    assert p.lowest_log_end_offset == 10
    p.make_leader(p.state.led_by(SELF), now=0)
    assert p.high_watermark == 10, "kept from before"
    assert (p.lowest_log_end_offset, p.low_watermark) == (0, -1)
    assert not fetched(p, OTHER, 20)
    assert fetched(p, THIRD, 20)
    assert p.high_watermark == 20


def test_a_new_leader_keeps_its_high_watermark_and_gives_in_sync_followers_time() -> None:
    p = follower()
    p.local.append_as_follower([BATCH.at(0, 1), BATCH.at(10, 1)], 10, 0)
    p.make_leader(p.state.led_by(SELF), now=100)
    assert p.high_watermark == 10
    p.maybe_shrink_isr(now=110)
    assert list(p.in_sync_replicas) == [SELF, OTHER, THIRD]
    p.maybe_shrink_isr(now=110.5)
    assert list(p.in_sync_replicas) == [SELF]


def test_a_followers_high_watermark_is_the_leaders_up_to_its_own_log_end() -> None:
    p = follower()
    p.local.append_as_follower([BATCH.at(0, 1)], 25, 0)
    assert p.high_watermark == 10
    p.local.append_as_follower([BATCH.at(10, 1), BATCH.at(20, 1)], 25, 5)
    assert (p.high_watermark, p.log.log_start_offset) == (25, 5)
    p.local.append_as_follower([], 10, 0)
    assert (p.high_watermark, p.log.log_start_offset) == (25, 5), "what is committed stays so"


def test_a_producer_that_begins_a_new_epoch_after_a_refusal_stores_a_batch_twice() -> None:
    """The leader failed before it acknowledged sequence 0, which its followers have (librdkafka#4953)."""
    p = follower()
    p.local.append_as_follower([numbered(0).at(0, 1)], 1, 0)
    assert refusal(p.check_leader) is ErrorCode.not_leader_or_follower, "the answer to sequences 0 and 1"
    p.make_leader(p.state.led_by(SELF), now=0)
    assert refusal(lambda: append_numbered(p, 2)) is ErrorCode.out_of_order_sequence_number
    assert append_numbered(p, 0) == 0, "sent again in the same epoch, it is not stored again"
    assert append_numbered(p, 0, epoch=1) == 1
    assert [batch.producer for batch in p.log.batches()] == [numbered(0).producer, numbered(0, 1).producer]


# Leader epochs of readers


def test_a_follower_tells_a_reader_in_an_older_epoch_of_the_epoch_first() -> None:
    p = follower()
    assert refusal(lambda: p.check_leader(0)) is ErrorCode.fenced_leader_epoch
    assert refusal(lambda: p.check_leader(1)) is ErrorCode.not_leader_or_follower


def test_a_diverging_reader_gets_the_diverging_epoch_and_no_records() -> None:
    p = leader()
    append(p)
    append(p)
    p.make_leader(p.state.led_by(SELF).led_by(SELF), now=0)
    append(p)
    diverging = read(p, 30, last_fetched_epoch=0)
    assert (diverging.diverging_epoch, diverging.batches) == (EpochEndOffset(0, 20), ())
    assert read(p, 10, last_fetched_epoch=1).diverging_epoch == EpochEndOffset(0, 20)
    assert read(p, 20, last_fetched_epoch=0).batches
    assert read(p, 30, last_fetched_epoch=2).diverging_epoch is None
    assert refusal(lambda: read(p, 30, last_fetched_epoch=3)) is ErrorCode.offset_out_of_range


@pytest.mark.parametrize(
    ("epochs", "leader_end", "left"),
    [
        ((1, 2, 2), EpochEndOffset(2, 20), (20, 2)),
        ((1, 2, 2), EpochEndOffset(1, 30), (10, 1)),
        ((3,), EpochEndOffset(1, 0), (0, -1)),
    ],
    ids=["inside an epoch", "after an epoch", "an epoch that the leader does not know"],
)
def test_a_follower_truncates_after_the_divergence(
    epochs: tuple[int, ...], leader_end: EpochEndOffset, left: tuple[int, int]
) -> None:
    p = follower()
    p.local.append_as_follower([BATCH.at(10 * at, epoch) for at, epoch in enumerate(epochs)], 0, 0)
    p.local.truncate_to_divergence(leader_end)
    assert (p.log.log_end_offset, p.log.latest_epoch) == left


def test_a_leader_that_appended_nothing_leaves_no_epoch_behind() -> None:
    p = leader(leader_epoch=1)
    append(p)
    p.make_leader(p.state.led_by(SELF), now=0)
    p.make_follower(p.state.led_by(OTHER))
    assert p.log.latest_epoch == 2
    p.local.truncate_to_divergence(EpochEndOffset(1, 15))
    assert (p.log.log_end_offset, p.log.latest_epoch) == (10, 1)


def test_a_log_of_the_leader_that_starts_inside_a_batch_replaces_what_a_follower_has_below() -> None:
    p = follower()
    p.local.append_as_follower([RecordBatch(15, b"another's", leader_epoch=1)], 0, 0)
    p.local.append_as_follower([BATCH.at(10, 2)], leader_high_watermark=20, leader_log_start_offset=15)
    assert (p.log.log_start_offset, p.log.log_end_offset, p.high_watermark) == (15, 20, 20)
    assert list(p.log.batches()) == [BATCH.at(10, 2)]


def test_a_follower_joins_only_when_it_has_reached_the_start_of_the_epoch() -> None:
    p = follower()
    p.local.append_as_follower([BATCH.at(0, 1), BATCH.at(10, 1)], 0, 0)
    p.make_leader(p.state.with_in_sync((SELF, OTHER)).led_by(SELF), now=0)
    fetched(p, THIRD, 10)
    assert list(p.in_sync_replicas) == [SELF, OTHER], "past the mark, but maybe not all that was committed"
    fetched(p, THIRD, 20)
    assert list(p.in_sync_replicas) == [SELF, OTHER, THIRD]
