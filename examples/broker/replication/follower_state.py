"""What a leader knows of one follower from that follower's fetches."""

import math

from examples.broker.storage.segment import UNKNOWN_OFFSET_METADATA, LogOffsetMetadata


class FollowerState:
    """A follower's offsets, and the last time at which it was caught up (kafka.cluster.Replica).

    The offsets are -1 until the follower fetches in the current leader epoch: what it reported to an earlier
    leader does not count.
    """

    __slots__ = (
        "_last_fetch_leader_log_end_offset",
        "_last_fetch_time",
        "last_caught_up_time",
        "log_end_offset_metadata",
        "log_start_offset",
        "replica_id",
    )

    def __init__(self, replica_id: int, last_caught_up_time: float) -> None:
        self.replica_id = replica_id
        self.log_end_offset_metadata = UNKNOWN_OFFSET_METADATA
        self.log_start_offset = -1
        self.last_caught_up_time = last_caught_up_time
        self._last_fetch_time = -math.inf
        self._last_fetch_leader_log_end_offset = 0

    def __repr__(self) -> str:
        return (
            f"<FollowerState of replica {self.replica_id} end={self.log_end_offset} "
            f"caught up at {self.last_caught_up_time}>"
        )

    @property
    def log_end_offset(self) -> int:
        return self.log_end_offset_metadata.message_offset

    def update_fetch_state(
        self, fetch_offset: LogOffsetMetadata, log_start_offset: int, leader_log_end_offset: int, now: float
    ) -> None:
        """Record a fetch: the follower has stored all records below ``fetch_offset``.

        Under steady appends a follower is always a little behind. So a fetch that reaches the leader's end at
        the time of the previous fetch counts as caught up at that time (KAFKA-4485).
        """
        if fetch_offset.message_offset >= leader_log_end_offset:
            self.last_caught_up_time = max(self.last_caught_up_time, now)
        elif fetch_offset.message_offset >= self._last_fetch_leader_log_end_offset:
            self.last_caught_up_time = max(self.last_caught_up_time, self._last_fetch_time)
        self.log_end_offset_metadata = fetch_offset
        self.log_start_offset = log_start_offset
        self._last_fetch_leader_log_end_offset = leader_log_end_offset
        self._last_fetch_time = now

    def is_caught_up(self, leader_log_end_offset: int, now: float, max_lag: float) -> bool:
        return self.log_end_offset == leader_log_end_offset or now - self.last_caught_up_time <= max_lag
