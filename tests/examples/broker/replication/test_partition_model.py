"""The high watermark and the in-sync replicas under any order of appends, fetches and silence."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from examples.broker.errors import ApiError
from examples.broker.metadata import PartitionState, TopicConfig
from examples.broker.replication.partition import Partition
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.replica import Replica
from tests.examples.broker.leader_broker import TOPIC_ID, events

MAX_LAG = 10
FOLLOWERS = (1, 2)


class PartitionMachine(RuleBasedStateMachine):
    """Followers only move forward. ``ends`` has the offset that each one has reported."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        stored = Replica(TOPIC_ID, segment_bytes=50)
        config = TopicConfig(min_insync_replicas=2)
        self.partition = Partition(events(), 0, stored, config, replica_lag_time_max=MAX_LAG)
        replicas = (0, *FOLLOWERS)
        self.partition.make_leader(PartitionState(replicas, in_sync=replicas, leader=0), self.now)
        self.ends = dict.fromkeys(FOLLOWERS, 0)
        self.high_watermark = 0

    def moved(self, reported: bool) -> None:
        """A call returns True if and only if it moves the high watermark, which only grows."""
        assert self.partition.high_watermark >= self.high_watermark
        if self.partition.high_watermark > self.high_watermark:
            assert reported
            assert len(self.partition.in_sync_replicas) >= 2, "it stays below min_insync_replicas"
        self.high_watermark = self.partition.high_watermark

    @rule(seconds=st.integers(1, MAX_LAG))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds

    @rule(acks_all=st.booleans())
    def append(self, acks_all: bool) -> None:
        enough = len(self.partition.in_sync_replicas) >= 2
        try:
            self.partition.append_as_leader(RecordBatch(1, b"x" * 20), acks_all=acks_all)
        except ApiError:
            assert acks_all
            assert not enough
        else:
            assert enough or not acks_all
            self.moved(self.partition.maybe_increment_high_watermark(self.now))

    @rule(follower=st.sampled_from(FOLLOWERS), part=st.floats(0, 1))
    def fetch(self, follower: int, part: float) -> None:
        behind = self.partition.log.log_end_offset - self.ends[follower]
        self.ends[follower] += round(behind * part)
        self.moved(self.partition.update_follower_fetch_state(follower, self.ends[follower], self.now).high)
        if self.ends[follower] >= self.high_watermark:
            assert follower in self.partition.in_sync_replicas

    @rule()
    def shrink(self) -> None:
        self.moved(self.partition.maybe_shrink_isr(self.now))

    @invariant()
    def what_is_committed_is_on_every_in_sync_replica(self) -> None:
        for follower in FOLLOWERS:
            if follower in self.partition.in_sync_replicas:
                assert self.ends[follower] >= self.partition.high_watermark

    @invariant()
    def the_leader_stays_in_sync_and_ahead(self) -> None:
        assert 0 in self.partition.in_sync_replicas
        assert self.partition.high_watermark <= self.partition.log.log_end_offset
        assert self.partition.lowest_log_end_offset == min(self.ends.values())


TestPartitionUnderAnyOrder = PartitionMachine.TestCase
TestPartitionUnderAnyOrder.settings = settings(stateful_step_count=30)
