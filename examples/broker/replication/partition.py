"""A partition on a broker that has a replica of it: what its leader does, and what its followers do."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import NO_LEADER, PartitionState, TopicConfig
from examples.broker.replication.delete_records import HIGH_WATERMARK
from examples.broker.replication.fetch import PartitionFetch, PartitionFetched
from examples.broker.replication.local_replica import LocalReplica
from examples.broker.replication.replica import Replica
from examples.broker.storage.leader_epochs import NO_EPOCH, UNKNOWN_EPOCH_END
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.segment import LogOffsetMetadata
from examples.broker.storage.stored_partition import StoredPartition
from examples.broker.storage.timestamps import LATEST_TIMESTAMP, NO_TIMESTAMP, TimestampAndOffset
from examples.broker.topic_partition import TopicPartition

REPLICA_LAG_TIME_MAX: Final = 30.0
NOT_ASSIGNED: Final = PartitionState((), (), NO_LEADER, leader_epoch=-1, partition_epoch=-1)

# Asks the controller for other in-sync replicas: from the state wanted, with the epochs the leader knows, to
# the state that holds now. ApiError when the controller refuses.
AlterPartition = Callable[[TopicPartition, PartitionState], PartitionState]


def grant(topic_partition: TopicPartition, wanted: PartitionState) -> PartitionState:
    """What a controller says that agrees to everything."""
    return wanted.with_in_sync(wanted.in_sync)


@dataclass(frozen=True, slots=True)
class LogAppendInfo:
    """Where a batch went, the offset behind it, and whether that moved the high watermark."""

    first_offset: int
    next_offset: int
    high_watermark_increased: bool


class WatermarksMoved(NamedTuple):
    """What a follower's fetch may have moved: what produces and consumers wait for, and what deletions do."""

    high: bool
    low: bool


class Partition:
    """Leader and follower state of one partition, after kafka.cluster.Partition.

    ``state`` says who leads; there is no leading or following before the first. It waits for nothing and has
    no clock: callers pass ``now`` in seconds, and are told when there are delayed operations to check.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        broker_id: int,
        stored: StoredPartition,
        config: TopicConfig,
        *,
        replica_lag_time_max: float = REPLICA_LAG_TIME_MAX,
        alter_partition: AlterPartition = grant,
        is_alive: Callable[[int], bool] = lambda broker_id: True,
    ) -> None:
        self.topic_partition = topic_partition
        self.state = NOT_ASSIGNED
        self.is_leader = False
        self.local = LocalReplica(stored)
        self.log = stored.log
        self._broker_id = broker_id
        self._config = config
        self._replica_lag_time_max = replica_lag_time_max
        self._alter_partition = alter_partition
        self._is_alive = is_alive
        self._followers: dict[int, Replica] = {}
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
        """Records below this offset are on every in-sync replica: committed, and readable by consumers."""
        return self.local.high_watermark

    @property
    def lowest_log_end_offset(self) -> int:
        """What every replica is known to have, in sync or not."""
        ends = [replica.log_end_offset for replica in self._followers.values()]
        return max(min(ends, default=self.log.log_end_offset), self.log.log_start_offset)

    @property
    def low_watermark(self) -> int:
        """Where the records of all live replicas start; -1 while that is not known of one."""
        starts = [
            replica.log_start_offset
            for replica in self._followers.values()
            if self._is_alive(replica.replica_id)
        ]
        return min([*starts, self.log.log_start_offset])

    # Becoming leader or follower

    def make_leader(self, state: PartitionState, now: float) -> None:
        """Lead as ``state`` says, which is ignored unless it is newer than what is known.

        In a new term nothing is known of the followers until they fetch: the high watermark, kept from
        before, waits for those in sync, and their time to catch up begins now.
        """
        if state.partition_epoch <= self.state.partition_epoch:
            return
        if not self.is_leader or state.leader_epoch > self.leader_epoch:
            self._followers.clear()
            self._leader_epoch_start_offset = self.log.log_end_offset
            self.log.begin_epoch(state.leader_epoch)
        self.state = state
        self.is_leader = True
        for replica_id in state.replicas:
            if replica_id != self._broker_id and replica_id not in self._followers:
                caught_up = now if replica_id in state.in_sync else -math.inf
                self._followers[replica_id] = Replica(replica_id, caught_up)
        self.maybe_increment_high_watermark(now)

    def make_follower(self, state: PartitionState) -> None:
        """Follow whoever leads, if anyone; ``state`` is ignored unless it is newer than what is known."""
        if state.partition_epoch > self.state.partition_epoch:
            self.state = state
            self.is_leader = False
            self._followers.clear()

    def check_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """ApiError unless this broker leads, and in the epoch the client believes in (-1: not checked).

        FENCED_LEADER_EPOCH tells a client that it knows less than this broker, UNKNOWN_LEADER_EPOCH that it
        knows more; NOT_LEADER_OR_FOLLOWER.
        """
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            fenced = current_leader_epoch < self.leader_epoch
            raise ApiError(
                ErrorCode.FENCED_LEADER_EPOCH if fenced else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"epoch {current_leader_epoch} is not that of {self!r}",
            )
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self!r} is not led here")

    def follows(self, leader_epoch: int) -> bool:
        """Whether what the leader of that epoch has said still counts."""
        return not self.is_leader and leader_epoch == self.leader_epoch

    # Reading

    def end_offset_metadata(self, *, from_follower: bool) -> LogOffsetMetadata:
        """How far a reader may read: followers to the end of the log, consumers to the high watermark."""
        return self.log.log_end_offset_metadata if from_follower else self.local.high_watermark_metadata

    def read(
        self, wanted: PartitionFetch, max_bytes: int, *, from_follower: bool, min_one_batch: bool
    ) -> PartitionFetched:
        """Batches from the offset wanted, or where the reader's log and this one diverge.

        ApiError OFFSET_OUT_OF_RANGE outside the log.
        """
        mark, start = self.high_watermark, self.log.log_start_offset
        if wanted.last_fetched_epoch != NO_EPOCH and wanted.fetch_offset >= start:
            end = self.log.end_offset_for_epoch(wanted.last_fetched_epoch)
            if end == UNKNOWN_EPOCH_END:
                raise ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"{self!r} knows no epoch {wanted.last_fetched_epoch}"
                )
            if end.epoch < wanted.last_fetched_epoch or end.end_offset < wanted.fetch_offset:
                return PartitionFetched(ErrorCode.NONE, mark, start, diverging_epoch=end)
        bound = self.end_offset_metadata(from_follower=from_follower)
        info = self.log.read(wanted.fetch_offset, max_bytes, bound, min_one_batch=min_one_batch)
        return PartitionFetched(ErrorCode.NONE, mark, start, info)

    def offset_for_timestamp(self, timestamp: int, *, from_follower: bool) -> TimestampAndOffset | None:
        """The first readable record that late; see ``PartitionLog.offset_for_timestamp``.

        ApiError OFFSET_NOT_AVAILABLE for what may turn out readable while the high watermark of a new leader
        lags behind what was committed under the one before (KIP-207).
        """
        readable = self.end_offset_metadata(from_follower=from_follower).message_offset
        if timestamp == LATEST_TIMESTAMP:
            latest = TimestampAndOffset(NO_TIMESTAMP, readable, self.leader_epoch)
        else:
            found = self.log.offset_for_timestamp(timestamp)
            if found is not None and (found.offset < readable or found.timestamp == NO_TIMESTAMP):
                return found
            latest = None
        if not from_follower and self._leader_epoch_start_offset > self.high_watermark:
            raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, f"{self!r} does not know yet what is committed")
        return latest

    # Leading

    def append_as_leader(self, batch: RecordBatch, now: float, *, acks_all: bool) -> LogAppendInfo:
        """Append to the leader's log.

        ApiError NOT_ENOUGH_REPLICAS, with nothing appended, when all in-sync replicas are to acknowledge it
        and there are fewer than ``min_insync_replicas``; MESSAGE_TOO_LARGE; or what an idempotent producer's
        sequence gives.
        """
        if acks_all and self._is_under_min_isr():
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self!r} needs {self._config.min_insync_replicas} in-sync replicas",
            )
        if batch.size_in_bytes > self._config.max_message_bytes:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{batch.size_in_bytes} bytes, where {self._config.max_message_bytes} are allowed",
            )
        first_offset = self.log.append_as_leader(batch, self.leader_epoch)
        return LogAppendInfo(
            first_offset, first_offset + batch.record_count, self.maybe_increment_high_watermark(now)
        )

    def update_follower_fetch_state(
        self, replica_id: int, fetch_offset: LogOffsetMetadata, now: float, log_start_offset: int = -1
    ) -> WatermarksMoved:
        """Learn from a follower's fetch how far it has got, and which watermarks that may have moved.

        A follower joins the in-sync replicas once it has reached the high watermark, and where this leader's
        term began, since until then it may be missing what was committed before (KAFKA-7128). ApiError
        NOT_LEADER_OR_FOLLOWER from a broker that holds no replica.
        """
        replica = self._followers.get(replica_id)
        if replica is None:
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {replica_id} holds no replica of {self!r}"
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

    def maybe_shrink_isr(self, now: float) -> bool:
        """Drop the followers that lag too long; True when that moved the high watermark.

        Too long is ``replica_lag_time_max`` without being caught up. A follower at the very end of the log
        stays, however long ago it fetched.
        """
        end, max_lag = self.log.log_end_offset, self._replica_lag_time_max
        in_sync = {
            replica_id
            for replica_id in self.in_sync_replicas
            if replica_id == self._broker_id or self._followers[replica_id].is_caught_up(end, now, max_lag)
        }
        return (
            len(in_sync) < len(self.in_sync_replicas)
            and self._alter_in_sync(in_sync)
            and self.maybe_increment_high_watermark(now)
        )

    def maybe_increment_high_watermark(self, now: float) -> bool:
        """Move it to the least log end offset of the replicas in sync, or about to be; True when it moved.

        About to be in sync is who is caught up. Waiting for it lets a follower that returns join: else the
        mark, at the leader's end while the leader is alone, would keep running ahead of it. Nothing waits for
        a dead one, so this is due whenever brokers came or went. Below ``min_insync_replicas`` the mark
        stands still (KAFKA-15583).
        """
        if self._is_under_min_isr():
            return False
        end = self.log.log_end_offset_metadata
        mark, max_lag, in_sync = end, self._replica_lag_time_max, self.state.in_sync
        for replica_id, replica in self._followers.items():
            if replica.log_end_offset < mark.message_offset and (
                replica_id in in_sync
                or (self._is_alive(replica_id) and replica.is_caught_up(end.message_offset, now, max_lag))
            ):
                mark = replica.log_end_offset_metadata
        current = self.local.high_watermark_metadata
        # A newer segment at the same offset counts as a move, so that the bytes from here on can be counted.
        if mark.message_offset > current.message_offset or (
            mark.message_offset == current.message_offset and current.on_older_segment(mark)
        ):
            self.local.move_high_watermark(mark)
            return True
        return False

    def check_enough_replicas_reach_offset(self, required_offset: int) -> ErrorCode | None:
        """How an append with acks=all that ends at ``required_offset`` stands; None while it must wait."""
        if self.high_watermark < required_offset:
            return None
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if self._is_under_min_isr() else ErrorCode.NONE

    def delete_records(self, before_offset: int) -> int:
        """Give up the records below ``before_offset``, or all that are committed; gives back below which.

        ApiError OFFSET_OUT_OF_RANGE past the high watermark (KIP-107).
        """
        offset = self.high_watermark if before_offset == HIGH_WATERMARK else before_offset
        if not 0 <= offset <= self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} is not below the high watermark of {self!r}"
            )
        self.log.increment_log_start_offset(offset)
        return offset

    def _is_under_min_isr(self) -> bool:
        return len(self.state.in_sync) < min(self._config.min_insync_replicas, len(self.state.replicas))

    def _alter_in_sync(self, in_sync: set[int]) -> bool:
        """Whether the controller agreed; if not, the leader goes on with the in-sync replicas it has."""
        ordered = tuple(replica_id for replica_id in self.state.replicas if replica_id in in_sync)
        try:
            self.state = self._alter_partition(self.topic_partition, replace(self.state, in_sync=ordered))
        except ApiError:
            return False
        return True
