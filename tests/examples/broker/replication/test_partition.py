"""The high watermark and the in-sync replicas. Time is a number the tests pass in."""

from collections.abc import Collection

from examples.broker.errors import ErrorCode
from examples.broker.metadata import PartitionState, TopicConfig
from examples.broker.replication.partition import Partition
from examples.broker.replication.requests import PartitionFetch
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.replica import Replica
from tests.examples.broker.leader_broker import TOPIC_ID, events

LEADER, FOLLOWER, OTHER = 0, 1, 2


def partition(
    *replica_ids: int, min_insync_replicas: int = 1, segment_bytes: int = 100, dead: Collection[int] = ()
) -> Partition:
    stored = Replica(TOPIC_ID, segment_bytes)
    partition = Partition(
        events(),
        LEADER,
        stored,
        TopicConfig(min_insync_replicas),
        replica_lag_time_max=10,
        is_alive=lambda broker_id: broker_id not in dead,
    )
    partition.make_leader(PartitionState(replica_ids, replica_ids, LEADER), now=0)
    return partition


def append(partition: Partition, now: float = 0, *, acks_all: bool = True) -> bool:
    """Append ten records in 40 bytes; return whether the high watermark moved."""
    partition.append_as_leader(RecordBatch(10, b"x" * 40), acks_all=acks_all)
    return partition.maybe_increment_high_watermark(now)


def in_sync(partition: Partition) -> list[int]:
    return list(partition.in_sync_replicas)


def fetched(partition: Partition, replica_id: int, offset: int, now: float = 0) -> bool:
    return partition.update_follower_fetch_state(replica_id, offset, now).high


def test_the_high_watermark_is_the_lowest_end_of_the_in_sync_replicas() -> None:
    p = partition(LEADER, FOLLOWER, OTHER)
    assert not append(p)
    assert not append(p)
    assert not fetched(p, FOLLOWER, 20)
    assert p.high_watermark == 0
    assert fetched(p, OTHER, 10)
    assert p.high_watermark == 10
    assert fetched(p, OTHER, 20)
    assert p.high_watermark == 20


def test_a_follower_that_lags_too_long_leaves_the_in_sync_replicas_and_frees_the_high_watermark() -> None:
    p = partition(LEADER, FOLLOWER, OTHER)
    append(p)
    fetched(p, FOLLOWER, 10, now=9)
    assert not p.maybe_shrink_isr(now=10)
    assert in_sync(p) == [LEADER, FOLLOWER, OTHER]
    assert p.maybe_shrink_isr(now=10.5)
    assert in_sync(p) == [LEADER, FOLLOWER]
    assert p.high_watermark == 10


def test_a_follower_at_the_log_end_stays_in_sync_without_fetches() -> None:
    p = partition(LEADER, FOLLOWER)
    append(p)
    fetched(p, FOLLOWER, 10, now=1)
    assert not p.maybe_shrink_isr(now=1_000)
    assert in_sync(p) == [LEADER, FOLLOWER]


def test_reaching_the_end_of_one_fetch_ago_counts_as_caught_up_at_that_time() -> None:
    p = partition(LEADER, FOLLOWER)
    for now in range(0, 40, 4):
        append(p, now)
        # The follower is always one batch and at most four seconds behind the leader.
        fetched(p, FOLLOWER, p.log.log_end_offset - 10, now)
        assert not p.maybe_shrink_isr(now)
    assert in_sync(p) == [LEADER, FOLLOWER]


def test_a_follower_that_lags_more_with_each_fetch_is_removed() -> None:
    p = partition(LEADER, FOLLOWER)
    for now in range(12):
        append(p, now)
        append(p, now)
        fetched(p, FOLLOWER, now * 10, now)
    p.maybe_shrink_isr(now=12)
    assert in_sync(p) == [LEADER]


def test_the_high_watermark_waits_for_a_follower_that_is_caught_up_and_about_to_join() -> None:
    p = partition(LEADER, FOLLOWER)
    append(p)
    p.maybe_shrink_isr(now=11)
    # It is out of sync, but has just reached the leader's end at its previous fetch.
    fetched(p, FOLLOWER, 0, now=12)
    append(p, now=13)
    assert p.high_watermark == 20, "a follower out of sync and behind does not hold it back"
    fetched(p, FOLLOWER, 10, now=14)
    assert in_sync(p) == [LEADER]
    assert not append(p, now=15)
    assert p.high_watermark == 20, "one that is nearly there does"
    fetched(p, FOLLOWER, 20, now=16)
    assert in_sync(p) == [LEADER, FOLLOWER]
    assert fetched(p, FOLLOWER, 30, now=17)
    assert p.high_watermark == 30


def test_the_high_watermark_does_not_wait_for_a_dead_follower_that_was_caught_up() -> None:
    dead: set[int] = set()
    p = partition(LEADER, FOLLOWER, OTHER, dead=dead)
    append(p)
    fetched(p, FOLLOWER, 10)
    fetched(p, OTHER, 10)
    p.make_leader(p.state.with_in_sync((LEADER, FOLLOWER)), now=1)
    append(p, now=1)
    assert not fetched(p, FOLLOWER, 20, now=1)
    dead.add(OTHER)
    assert p.maybe_increment_high_watermark(now=1)
    assert p.high_watermark == 20


def test_the_high_watermark_does_not_move_below_min_insync_replicas() -> None:
    p = partition(LEADER, FOLLOWER, min_insync_replicas=2)
    append(p)
    assert not p.maybe_shrink_isr(now=11)
    assert p.high_watermark == 0
    assert fetched(p, FOLLOWER, 10, now=12)
    assert p.high_watermark == 10


def test_min_insync_replicas_is_at_most_the_number_of_replicas() -> None:
    p = partition(LEADER, min_insync_replicas=2)
    assert append(p)


def test_an_append_is_answered_by_the_high_watermark() -> None:
    p = partition(LEADER, FOLLOWER, OTHER, min_insync_replicas=3)
    append(p)
    assert p.check_enough_replicas_reach_offset(10) is None
    for replica_id in (FOLLOWER, OTHER):
        fetched(p, replica_id, 10)
    assert p.check_enough_replicas_reach_offset(10) is ErrorCode.none
    append(p)
    p.maybe_shrink_isr(now=11)
    assert p.check_enough_replicas_reach_offset(10) is ErrorCode.not_enough_replicas_after_append


def test_a_follower_outside_the_in_sync_replicas_is_read_again_since_it_may_join() -> None:
    p = partition(LEADER, FOLLOWER)
    assert p.has_nothing_new_for(FOLLOWER, PartitionFetch(0))
    p.make_leader(p.state.with_in_sync((LEADER,)), now=0)
    assert not p.has_nothing_new_for(FOLLOWER, PartitionFetch(0))
