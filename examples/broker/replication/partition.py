"""A partition on a broker that has a replica of it, and what that broker does as its leader or follower."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import LOG_APPEND_TIME, NO_LEADER, PartitionState, TopicConfig
from examples.broker.replication.followers import (
    REPLICA_LAG_TIME_MAX,
    AlterPartition,
    Followers,
    WatermarksMoved,
    accept_any_isr,
)
from examples.broker.replication.requests import HIGH_WATERMARK, PartitionFetch, PartitionFetched
from examples.broker.storage.leader_epochs import NO_EPOCH, UNKNOWN_EPOCH_END
from examples.broker.storage.record_batch import (
    LATEST_TIMESTAMP,
    NO_TIMESTAMP,
    RecordBatch,
    TimestampAndOffset,
)
from examples.broker.storage.replica import Replica
from examples.broker.topic_partition import TopicPartition

NOT_ASSIGNED: Final = PartitionState((), (), NO_LEADER, leader_epoch=-1, partition_epoch=-1)


class Partition:
    """Leader and follower state of one partition, after kafka.cluster.Partition.

    ``state`` names the leader and the replicas; until the first state the broker neither leads nor follows.
    A partition never waits and has no clock: callers pass ``now`` in seconds, and the return values say which
    delayed operations to check. It calls ``changing`` before each change that a fetch can notice.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        broker_id: int,
        replica: Replica,
        config: TopicConfig,
        *,
        replica_lag_time_max: float = REPLICA_LAG_TIME_MAX,
        alter_partition: AlterPartition = accept_any_isr,
        is_alive: Callable[[int], bool] = lambda broker_id: True,
        changing: Callable[["Partition"], None] = lambda partition: None,
    ) -> None:
        self.topic_partition = topic_partition
        self.state = NOT_ASSIGNED
        self.is_leader = False
        self.local = replica
        self.log = replica.log
        self._broker_id = broker_id
        self._config = config
        self._alter_partition = alter_partition
        self._changing = changing
        self._followers = Followers(replica_lag_time_max, is_alive)
        self._leader_epoch_start_offset = 0

    def __repr__(self) -> str:
        return (
            f"<Partition {self.topic_partition} on {self._broker_id} leader={self.state.leader} "
            f"epoch={self.leader_epoch} isr={list(self.in_sync_replicas)} hw={self.high_watermark} "
            f"end={self.log.log_end_offset}>"
        )

    @property
    def leader_epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def in_sync_replicas(self) -> tuple[int, ...]:
        return self.state.in_sync

    @property
    def high_watermark(self) -> int:
        """The offset below which every in-sync replica has all records, and consumers may read."""
        return self.local.high_watermark

    @property
    def lowest_log_end_offset(self) -> int:
        """The offset below which every replica is known to have all records, in sync or not."""
        lowest = self._followers.lowest_log_end_offset(self.log.log_end_offset)
        return max(lowest, self.log.log_start_offset)

    @property
    def low_watermark(self) -> int:
        """The lowest log start offset of the live replicas; -1 while one of them is unknown."""
        return self._followers.low_watermark(self.log.log_start_offset)

    @property
    def has_log_append_time(self) -> bool:
        """Whether records have the time of their append, and not that of their producer."""
        return self._config.message_timestamp_type == LOG_APPEND_TIME

    def configure(self, config: TopicConfig) -> None:
        """Take over the configuration of the topic, which may have changed."""
        self._config = config
        self.log.segment_bytes = config.segment_bytes

    # Becoming leader or follower

    def make_leader(self, state: PartitionState, now: float) -> None:
        """Become the leader as ``state`` says. A state that is not newer than the known one is ignored.

        In a new leader epoch the leader knows nothing of its followers until they fetch. The high watermark
        stays where it was until the in-sync followers have fetched; their time to catch up begins now.
        """
        if state.partition_epoch <= self.state.partition_epoch:
            return
        self._changing(self)
        if not self.is_leader or state.leader_epoch > self.leader_epoch:
            self._followers.clear()
            self._leader_epoch_start_offset = self.log.log_end_offset
            self.log.begin_epoch(state.leader_epoch)
        self.state = state
        self.is_leader = True
        followers = (replica_id for replica_id in state.replicas if replica_id != self._broker_id)
        self._followers.add(followers, state.in_sync, now)
        self.maybe_increment_high_watermark(now)

    def make_follower(self, state: PartitionState) -> None:
        """Become a follower as ``state`` says. A state that is not newer than the known one is ignored."""
        if state.partition_epoch > self.state.partition_epoch:
            self._changing(self)
            self.state = state
            self.is_leader = False
            self._followers.clear()

    def check_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Raise ApiError unless this broker leads, and in the client's leader epoch, if that is given.

        FENCED_LEADER_EPOCH when the client's epoch is older than this broker's, UNKNOWN_LEADER_EPOCH when it
        is newer, NOT_LEADER_OR_FOLLOWER when another broker leads.
        """
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            fenced = current_leader_epoch < self.leader_epoch
            raise ApiError(
                ErrorCode.fenced_leader_epoch if fenced else ErrorCode.unknown_leader_epoch,
                f"leader epoch {current_leader_epoch} is not the one of {self!r}; fetch the metadata again",
            )
        if not self.is_leader:
            raise ApiError(ErrorCode.not_leader_or_follower, f"this broker does not lead {self!r}")

    def follows(self, leader_epoch: int) -> bool:
        """Whether this broker still follows the leader of that epoch, so that its answers are valid."""
        return not self.is_leader and leader_epoch == self.leader_epoch

    # Reading

    def readable_end(self, *, from_follower: bool) -> int:
        """Return where a follower (at the log end offset) or a consumer (at the high watermark) must stop."""
        return self.log.log_end_offset if from_follower else self.high_watermark

    def readable_bytes(self, wanted: PartitionFetch, *, from_follower: bool) -> int:
        """Return how many bytes a read would find, up to the wanted ``max_bytes``, without a read.

        Raises ApiError OFFSET_OUT_OF_RANGE outside the log.
        """
        end = self.readable_end(from_follower=from_follower)
        return max(0, min(self.log.bytes_between(wanted.fetch_offset, end), wanted.max_bytes))

    def read(
        self, wanted: PartitionFetch, max_bytes: int, *, from_follower: bool, min_one_batch: bool
    ) -> PartitionFetched:
        """Return batches from the wanted offset, or the point where the reader's log diverges from this one.

        Raises ApiError OFFSET_OUT_OF_RANGE outside the log.
        """
        mark, start = self.high_watermark, self.log.log_start_offset
        if wanted.last_fetched_epoch != NO_EPOCH and wanted.fetch_offset >= start:
            end = self.log.end_offset_for_epoch(wanted.last_fetched_epoch)
            if end == UNKNOWN_EPOCH_END:
                raise ApiError(
                    ErrorCode.offset_out_of_range,
                    f"{self!r} does not know leader epoch {wanted.last_fetched_epoch}",
                )
            if end.epoch < wanted.last_fetched_epoch or end.end_offset < wanted.fetch_offset:
                return PartitionFetched(ErrorCode.none, mark, start, diverging_epoch=end)
        bound = self.readable_end(from_follower=from_follower)
        batches = self.log.read(wanted.fetch_offset, max_bytes, bound, min_one_batch=min_one_batch)
        return PartitionFetched(ErrorCode.none, mark, start, batches)

    def has_nothing_new_for(self, replica_id: int, wanted: PartitionFetch) -> bool:
        """Whether a reader at the wanted offset learns nothing and changes nothing until this one changes.

        A follower outside the in-sync replicas may join them with its next fetch, though the controller has
        refused it before.
        """
        if replica_id < 0:
            return wanted.fetch_offset == self.high_watermark
        return wanted.fetch_offset == self.log.log_end_offset and replica_id in self.in_sync_replicas

    def offset_for_timestamp(self, timestamp: int, *, from_follower: bool) -> TimestampAndOffset | None:
        """Return the first readable record with that timestamp or a later one.

        See ``PartitionLog.offset_for_timestamp``. Raises ApiError OFFSET_NOT_AVAILABLE while the high
        watermark of a new leader may still be lower than what was committed under the previous leader, and
        the answer could therefore go back (KIP-207).
        """
        readable = self.readable_end(from_follower=from_follower)
        if timestamp == LATEST_TIMESTAMP:
            latest = TimestampAndOffset(NO_TIMESTAMP, readable, self.leader_epoch)
        else:
            found = self.log.offset_for_timestamp(timestamp)
            if found is not None and (found.offset < readable or found.timestamp == NO_TIMESTAMP):
                return found
            latest = None
        if not from_follower and self._leader_epoch_start_offset > self.high_watermark:
            raise ApiError(
                ErrorCode.offset_not_available,
                f"the new leader of {self!r} does not know the high watermark yet; retry",
            )
        return latest

    # Leading

    def append_as_leader(self, batch: RecordBatch, *, acks_all: bool) -> int:
        """Append a batch to the leader's log, and return its first offset. The high watermark does not move.

        Raises ApiError, with nothing appended: NOT_ENOUGH_REPLICAS with acks=all and fewer in-sync replicas
        than ``min_insync_replicas``, MESSAGE_TOO_LARGE, or an error of ``ProducerState.check``.
        """
        if acks_all and self._is_under_min_isr():
            raise ApiError(
                ErrorCode.not_enough_replicas,
                f"acks=all needs {self._config.min_insync_replicas} in-sync replicas of {self!r}",
            )
        if batch.size_in_bytes > self._config.max_message_bytes:
            raise ApiError(
                ErrorCode.message_too_large,
                f"{batch.size_in_bytes} bytes, but max.message.bytes is {self._config.max_message_bytes}",
            )
        self._changing(self)
        return self.log.append_as_leader(batch, self.leader_epoch)

    def update_follower_fetch_state(
        self, replica_id: int, fetch_offset: int, now: float, log_start_offset: int = -1
    ) -> WatermarksMoved:
        """Record how far a follower is, as its fetch shows; return which watermarks may have moved.

        A follower joins the in-sync replicas once it has reached the high watermark and the offset at which
        this leader's epoch began: before that it may lack committed records (KAFKA-7128). Raises ApiError
        NOT_LEADER_OR_FOLLOWER for a broker without a replica.
        """
        replica = self._followers.get(replica_id)
        if replica is None:
            raise ApiError(
                ErrorCode.not_leader_or_follower, f"broker {replica_id} has no replica of {self!r}"
            )
        previous_end, previous_start = replica.log_end_offset, replica.log_start_offset
        replica.update_fetch_state(fetch_offset, log_start_offset, self.log.log_end_offset, now)
        joins = (
            replica_id not in self.in_sync_replicas
            and replica.log_end_offset >= max(self.high_watermark, self._leader_epoch_start_offset)
            and self._alter_in_sync({*self.in_sync_replicas, replica_id})
        )
        moved = (joins or replica.log_end_offset != previous_end) and self.maybe_increment_high_watermark(now)
        return WatermarksMoved(moved, log_start_offset != previous_start)

    def record_idle_fetches(self, replica_id: int, latest: float) -> None:
        """Record that a follower has fetched from where it is until ``latest``. Call it before a change."""
        replica = self._followers.get(replica_id)
        if replica is not None:
            replica.update_fetch_state(
                replica.log_end_offset, replica.log_start_offset, self.log.log_end_offset, latest
            )

    def maybe_shrink_isr(self, now: float) -> bool:
        """Remove lagging followers from the in-sync replicas; True when that moved the high watermark.

        A follower lags when it was not caught up for ``replica_lag_time_max`` seconds. A follower at the very
        end of the log stays, however long ago it fetched.
        """
        in_sync = {*self.in_sync_replicas} - self._followers.lagging(self.log.log_end_offset, now)
        return (
            len(in_sync) < len(self.in_sync_replicas)
            and self._alter_in_sync(in_sync)
            and self.maybe_increment_high_watermark(now)
        )

    def maybe_increment_high_watermark(self, now: float) -> bool:
        """Move the high watermark to the lowest log end offset that counts; True when it moved.

        See ``Followers.high_watermark`` for the followers that count. A follower on a dead broker does not,
        so call this whenever brokers came or went. With fewer in-sync replicas than ``min_insync_replicas``
        the high watermark does not move (KAFKA-15583).
        """
        if self._is_under_min_isr():
            return False
        mark = self._followers.high_watermark(self.log.log_end_offset, self.state.in_sync, now)
        if mark <= self.high_watermark:
            return False
        self._changing(self)
        self.local.high_watermark = mark
        return True

    def check_enough_replicas_reach_offset(self, required_offset: int) -> ErrorCode | None:
        """Return the answer to an append with acks=all up to ``required_offset``; None while it must wait."""
        if self.high_watermark < required_offset:
            return None
        return ErrorCode.not_enough_replicas_after_append if self._is_under_min_isr() else ErrorCode.none

    def delete_records(self, before_offset: int) -> int:
        """Delete the records below ``before_offset``, or all committed ones; return the new log start offset.

        Raises ApiError OFFSET_OUT_OF_RANGE above the high watermark (KIP-107).
        """
        offset = self.high_watermark if before_offset == HIGH_WATERMARK else before_offset
        if not 0 <= offset <= self.high_watermark:
            raise ApiError(
                ErrorCode.offset_out_of_range,
                f"offset {offset} is above the high watermark of {self!r}, or negative",
            )
        self._changing(self)
        self.log.increment_log_start_offset(offset)
        return offset

    def delete_old_segments(self, wall_time: int) -> bool:
        """Delete the segments that the topic's retention does not cover; return whether there were any.

        ``wall_time`` is in milliseconds since the epoch. The followers learn the new log start offset from
        their fetches. What is not committed is kept.
        """
        start = self.log.retained_from(
            self.high_watermark,
            wall_time,
            retention_ms=self._config.retention_ms,
            retention_bytes=self._config.retention_bytes,
        )
        if start == self.log.log_start_offset:
            return False
        self._changing(self)
        self.log.delete_segments_below(start)
        return True

    def _is_under_min_isr(self) -> bool:
        return len(self.state.in_sync) < min(self._config.min_insync_replicas, len(self.state.replicas))

    def _alter_in_sync(self, in_sync: set[int]) -> bool:
        """Return whether the controller accepts the change; if not, the in-sync replicas stay as they are."""
        ordered = tuple(replica_id for replica_id in self.state.replicas if replica_id in in_sync)
        try:
            self.state = self._alter_partition(self.topic_partition, replace(self.state, in_sync=ordered))
        except ApiError:
            return False
        return True
