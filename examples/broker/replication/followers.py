"""What the leader of a partition knows of its followers: how far each one is, and which ones keep up."""

import math
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from examples.broker.metadata import PartitionState
from examples.broker.topic_partition import TopicPartition

REPLICA_LAG_TIME_MAX: Final = 30.0

AlterPartition = Callable[[TopicPartition, PartitionState], PartitionState]
"""Asks the controller for the wanted in-sync replicas; returns the new state (KIP-497).

The second argument is the wanted state, with the epochs that the leader knows. Raises ApiError when the
controller refuses.
"""


def accept_any_isr(topic_partition: TopicPartition, wanted: PartitionState) -> PartitionState:
    """Accept every change of the in-sync replicas, for use without a controller."""
    return wanted.with_in_sync(wanted.in_sync)


class FollowerState:
    """A follower's offsets, and the last time at which it was caught up (kafka.cluster.Replica).

    The offsets are -1 until the follower fetches in the current leader epoch: what it reported to an earlier
    leader does not count.
    """

    __slots__ = (
        "_last_fetch_leader_log_end_offset",
        "_last_fetch_time",
        "last_caught_up_time",
        "log_end_offset",
        "log_start_offset",
        "replica_id",
    )

    def __init__(self, replica_id: int, last_caught_up_time: float) -> None:
        self.replica_id = replica_id
        self.log_end_offset = -1
        self.log_start_offset = -1
        self.last_caught_up_time = last_caught_up_time
        self._last_fetch_time = -math.inf
        self._last_fetch_leader_log_end_offset = 0

    def __repr__(self) -> str:
        return (
            f"<FollowerState of replica {self.replica_id} end={self.log_end_offset} "
            f"caught up at {self.last_caught_up_time}>"
        )

    def update_fetch_state(
        self, fetch_offset: int, log_start_offset: int, leader_log_end_offset: int, now: float
    ) -> None:
        """Record a fetch: the follower has stored all records below ``fetch_offset``.

        Under steady appends a follower is always a little behind. So a fetch that reaches the leader's end at
        the time of the previous fetch counts as caught up at that time (KAFKA-4485).
        """
        if fetch_offset >= leader_log_end_offset:
            self.last_caught_up_time = max(self.last_caught_up_time, now)
        elif fetch_offset >= self._last_fetch_leader_log_end_offset:
            self.last_caught_up_time = max(self.last_caught_up_time, self._last_fetch_time)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self._last_fetch_leader_log_end_offset = leader_log_end_offset
        self._last_fetch_time = now

    def is_caught_up(self, leader_log_end_offset: int, now: float, max_lag: float) -> bool:
        return self.log_end_offset == leader_log_end_offset or now - self.last_caught_up_time <= max_lag


class WatermarksMoved(NamedTuple):
    """Which watermarks a follower's fetch may have moved.

    Produces and consumers' fetches wait for the high watermark, deletions for the low watermark.
    """

    high: bool
    low: bool


class Followers:
    """The followers of one partition, as its leader sees them in one leader epoch.

    A follower is caught up when its log ends where the leader's does, or did at most ``replica_lag_time_max``
    seconds ago. ``is_alive`` says whether the controller counts a broker as live.
    """

    __slots__ = ("_is_alive", "_replica_lag_time_max", "_replicas")

    def __init__(self, replica_lag_time_max: float, is_alive: Callable[[int], bool]) -> None:
        self._replica_lag_time_max = replica_lag_time_max
        self._is_alive = is_alive
        self._replicas: dict[int, FollowerState] = {}

    def __repr__(self) -> str:
        return f"<Followers {list(self._replicas.values())}>"

    def clear(self) -> None:
        self._replicas.clear()

    def add(self, replica_ids: Iterable[int], in_sync: Collection[int], now: float) -> None:
        """Add the brokers that are not followers yet.

        The time in which an in-sync follower has to catch up begins ``now``.
        """
        for replica_id in replica_ids:
            if replica_id not in self._replicas:
                caught_up = now if replica_id in in_sync else -math.inf
                self._replicas[replica_id] = FollowerState(replica_id, caught_up)

    def get(self, replica_id: int) -> FollowerState | None:
        return self._replicas.get(replica_id)

    def lowest_log_end_offset(self, leader_end: int) -> int:
        """Return the offset below which every replica is known to have all records, in sync or not."""
        return min([leader_end, *(replica.log_end_offset for replica in self._replicas.values())])

    def low_watermark(self, leader_start: int) -> int:
        """Return the lowest log start offset of the live replicas; -1 while one of them is unknown."""
        starts = (
            replica.log_start_offset
            for replica in self._replicas.values()
            if self._is_alive(replica.replica_id)
        )
        return min([leader_start, *starts])

    def lagging(self, leader_end: int, now: float) -> set[int]:
        """Return the ids of the followers that are not caught up."""
        return {
            replica_id
            for replica_id, replica in self._replicas.items()
            if not replica.is_caught_up(leader_end, now, self._replica_lag_time_max)
        }

    def high_watermark(self, leader_end: int, in_sync: Collection[int], now: float) -> int:
        """Return the lowest log end offset of the replicas that are in sync or about to be.

        A live follower that is caught up is about to be in sync. The high watermark waits for it, so that a
        returning follower can join: otherwise the watermark would stay ahead of the follower for as long as
        the leader is alone in the in-sync replicas and its log grows.
        """
        ends = (
            replica.log_end_offset
            for replica_id, replica in self._replicas.items()
            if replica_id in in_sync
            or (
                self._is_alive(replica_id)
                and replica.is_caught_up(leader_end, now, self._replica_lag_time_max)
            )
        )
        return min([leader_end, *ends])
