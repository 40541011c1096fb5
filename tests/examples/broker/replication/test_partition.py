"""Which followers are in sync, and hold the high watermark back.

The model checks what holds after any order of fetches. These are the cases that it does not distinguish.
"""

from examples.broker.errors import ErrorCode
from examples.broker.replication.requests import PartitionFetch
from tests.examples.broker.replication.one_partition import OTHER, SELF, THIRD, append, fetched, leader


def test_a_follower_at_the_log_end_stays_in_sync_without_fetches() -> None:
    p = leader(SELF, OTHER)
    append(p)
    fetched(p, OTHER, 10, now=1)
    assert not p.maybe_shrink_isr(now=1_000)
    assert list(p.in_sync_replicas) == [SELF, OTHER]


def test_reaching_the_end_of_one_fetch_ago_counts_as_caught_up_at_that_time() -> None:
    p = leader(SELF, OTHER)
    for now in range(0, 40, 4):
        append(p, now)
        # The follower is always one batch and at most four seconds behind the leader.
        fetched(p, OTHER, p.log.log_end_offset - 10, now)
        assert not p.maybe_shrink_isr(now)
    assert list(p.in_sync_replicas) == [SELF, OTHER]


def test_a_follower_that_lags_more_with_each_fetch_is_removed() -> None:
    p = leader(SELF, OTHER)
    for now in range(12):
        append(p, now)
        append(p, now)
        fetched(p, OTHER, now * 10, now)
    p.maybe_shrink_isr(now=12)
    assert list(p.in_sync_replicas) == [SELF]


def test_the_high_watermark_waits_for_a_follower_that_is_caught_up_and_about_to_join() -> None:
    p = leader(SELF, OTHER)
    append(p)
    p.maybe_shrink_isr(now=11)
    # It is out of sync, but has just reached the leader's end at its previous fetch.
    fetched(p, OTHER, 0, now=12)
    append(p, now=13)
    assert p.high_watermark == 20, "a follower out of sync and behind does not hold it back"
    fetched(p, OTHER, 10, now=14)
    assert list(p.in_sync_replicas) == [SELF]
    assert not append(p, now=15)
    assert p.high_watermark == 20, "one that is nearly there does"
    fetched(p, OTHER, 20, now=16)
    assert list(p.in_sync_replicas) == [SELF, OTHER]
    assert fetched(p, OTHER, 30, now=17)
    assert p.high_watermark == 30


def test_the_high_watermark_does_not_wait_for_a_dead_follower_that_was_caught_up() -> None:
    dead: set[int] = set()
    p = leader(dead=dead)
    append(p)
    fetched(p, OTHER, 10)
    fetched(p, THIRD, 10)
    p.make_leader(p.state.with_in_sync((SELF, OTHER)), now=1)
    append(p, now=1)
    assert not fetched(p, OTHER, 20, now=1)
    dead.add(THIRD)
    assert p.maybe_increment_high_watermark(now=1)
    assert p.high_watermark == 20


def test_an_append_is_answered_by_the_high_watermark() -> None:
    p = leader(min_insync_replicas=3)
    append(p)
    assert p.check_enough_replicas_reach_offset(10) is None
    for replica_id in (OTHER, THIRD):
        fetched(p, replica_id, 10)
    assert p.check_enough_replicas_reach_offset(10) is ErrorCode.none
    append(p)
    p.maybe_shrink_isr(now=11)
    assert p.check_enough_replicas_reach_offset(10) is ErrorCode.not_enough_replicas_after_append


def test_a_follower_outside_the_in_sync_replicas_is_read_again_since_it_may_join() -> None:
    p = leader(SELF, OTHER)
    assert p.has_nothing_new_for(OTHER, PartitionFetch(0))
    p.make_leader(p.state.with_in_sync((SELF,)), now=0)
    assert not p.has_nothing_new_for(OTHER, PartitionFetch(0))
