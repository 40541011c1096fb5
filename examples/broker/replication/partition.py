"""A partition as its leader sees it: the log, the followers, the in-sync replicas, the high watermark."""

from collections.abc import Sequence
from dataclasses import dataclass

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.replica import Replica
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.segment import FetchDataInfo, LogOffsetMetadata, RecordBatch
from examples.broker.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionConfig:
    """Bytes and seconds, by Kafka's names and, but for the smaller segment, with Kafka's defaults."""

    segment_bytes: int = 1 << 20
    min_insync_replicas: int = 1
    replica_lag_time_max: float = 30.0


@dataclass(frozen=True, slots=True)
class LogAppendInfo:
    """Where a batch went, the offset behind it, and whether that moved the high watermark."""

    first_offset: int
    next_offset: int
    high_watermark_increased: bool


class Partition:
    """Leader and follower state of one partition, after kafka.cluster.Partition.

    It waits for nothing and has no clock: callers pass ``now`` in seconds, and are told when the high
    watermark moved, which is when there are delayed operations to check. Replicas start out empty and in
    sync.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        leader_id: int,
        replica_ids: Sequence[int],
        config: PartitionConfig,
        now: float,
    ) -> None:
        if leader_id not in replica_ids:
            raise ValueError(f"the leader {leader_id} is not one of the replicas {list(replica_ids)}")
        self.topic_partition = topic_partition
        self.leader_id = leader_id
        self.log = PartitionLog(config.segment_bytes)
        self.high_watermark_metadata = self.log.log_end_offset_metadata
        self._config = config
        self._followers = {
            replica_id: Replica(replica_id, self.log.log_end_offset_metadata, now)
            for replica_id in replica_ids
            if replica_id != leader_id
        }
        self._in_sync = set(replica_ids)

    def __repr__(self) -> str:
        return (
            f"<Partition {self.topic_partition} leader={self.leader_id} isr={list(self.in_sync_replicas)} "
            f"hw={self.high_watermark} end={self.log.log_end_offset}>"
        )

    @property
    def high_watermark(self) -> int:
        """Records below this offset are on every in-sync replica: committed, and readable by consumers."""
        return self.high_watermark_metadata.message_offset

    @property
    def in_sync_replicas(self) -> tuple[int, ...]:
        return tuple(sorted(self._in_sync))

    @property
    def lowest_log_end_offset(self) -> int:
        """What every replica has, in sync or not."""
        ends = [replica.log_end_offset for replica in self._followers.values()]
        return min(ends, default=self.log.log_end_offset)

    def end_offset_metadata(self, *, from_follower: bool) -> LogOffsetMetadata:
        """How far a reader may read: followers to the end of the log, consumers to the high watermark."""
        return self.log.log_end_offset_metadata if from_follower else self.high_watermark_metadata

    def read(self, offset: int, max_bytes: int, *, from_follower: bool, min_one_batch: bool) -> FetchDataInfo:
        bound = self.end_offset_metadata(from_follower=from_follower)
        return self.log.read(offset, max_bytes, bound, min_one_batch=min_one_batch)

    def append_as_leader(self, batch: RecordBatch, now: float, *, acks_all: bool) -> LogAppendInfo:
        """Append to the leader's log.

        ApiError NOT_ENOUGH_REPLICAS, with nothing appended, when all in-sync replicas are to acknowledge it
        and there are fewer than ``min_insync_replicas``.
        """
        if acks_all and self._is_under_min_isr():
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self!r} needs {self._config.min_insync_replicas} in-sync replicas",
            )
        stored = self.log.append_as_leader(batch)
        return LogAppendInfo(
            stored.base_offset, stored.next_offset, self._maybe_increment_high_watermark(now)
        )

    def update_follower_fetch_state(
        self, replica_id: int, fetch_offset: LogOffsetMetadata, now: float
    ) -> bool:
        """Learn from a follower's fetch how far it has got; True when that moved the high watermark.

        A follower joins the in-sync replicas once it has reached the high watermark. ApiError
        NOT_LEADER_OR_FOLLOWER from a broker that holds no replica.
        """
        replica = self._followers.get(replica_id)
        if replica is None:
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {replica_id} holds no replica of {self!r}"
            )
        previous_end = replica.log_end_offset
        replica.update_fetch_state(fetch_offset, self.log.log_end_offset, now)
        joins = replica_id not in self._in_sync and replica.log_end_offset >= self.high_watermark
        if joins:
            self._in_sync.add(replica_id)
        return (joins or replica.log_end_offset != previous_end) and self._maybe_increment_high_watermark(now)

    def maybe_shrink_isr(self, now: float) -> bool:
        """Drop the followers that lag too long; True when that moved the high watermark.

        Too long is ``replica_lag_time_max`` without being caught up. A follower at the very end of the log
        stays, however long ago it fetched.
        """
        end, max_lag = self.log.log_end_offset, self._config.replica_lag_time_max
        out_of_sync = {
            replica_id
            for replica_id, replica in self._followers.items()
            if replica_id in self._in_sync and not replica.is_caught_up(end, now, max_lag)
        }
        self._in_sync -= out_of_sync
        return bool(out_of_sync) and self._maybe_increment_high_watermark(now)

    def check_enough_replicas_reach_offset(self, required_offset: int) -> ErrorCode | None:
        """How an append with acks=all that ends at ``required_offset`` stands; None while it must wait."""
        if self.high_watermark < required_offset:
            return None
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if self._is_under_min_isr() else ErrorCode.NONE

    def delete_records(self, before_offset: int) -> None:
        """Give up the records below ``before_offset`` (KIP-107).

        ApiError OFFSET_OUT_OF_RANGE past the high watermark.
        """
        if before_offset > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{before_offset} is past the high watermark of {self!r}"
            )
        self.log.increment_log_start_offset(before_offset)

    def truncate_to(self, offset: int) -> None:
        """Cut the log; the one thing that takes the high watermark back, and only to the new end."""
        self.log.truncate_to(offset)
        if self.high_watermark >= self.log.log_end_offset:
            self.high_watermark_metadata = self.log.log_end_offset_metadata

    def _is_under_min_isr(self) -> bool:
        return len(self._in_sync) < min(self._config.min_insync_replicas, len(self._followers) + 1)

    def _maybe_increment_high_watermark(self, now: float) -> bool:
        """The least log end offset of the replicas that are in sync, or caught up and so about to be.

        Waiting for the latter lets a follower that returns join: else the mark, at the leader's end while the
        leader is alone, would keep running ahead of it. Below ``min_insync_replicas`` the mark stands still
        (KAFKA-15583).
        """
        if self._is_under_min_isr():
            return False
        end = self.log.log_end_offset_metadata
        mark, max_lag = end, self._config.replica_lag_time_max
        for replica_id, replica in self._followers.items():
            if replica.log_end_offset < mark.message_offset and (
                replica_id in self._in_sync or replica.is_caught_up(end.message_offset, now, max_lag)
            ):
                mark = replica.log_end_offset_metadata
        current = self.high_watermark_metadata
        # A newer segment at the same offset counts as a move, so that the bytes from here on can be counted.
        if mark.message_offset > current.message_offset or (
            mark.message_offset == current.message_offset and current.on_older_segment(mark)
        ):
            self.high_watermark_metadata = mark
            return True
        return False
