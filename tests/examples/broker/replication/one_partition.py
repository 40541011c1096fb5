"""A partition of three replicas on broker 0, without a broker. Time is a number that the tests pass in."""

from collections.abc import Callable, Collection

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState, TopicConfig
from examples.broker.replication.partition import Partition
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.replica import Replica
from tests.examples.broker.leader_broker import TOPIC_ID, events

SELF, OTHER, THIRD = REPLICAS = (0, 1, 2)
FIRST = PartitionState(REPLICAS, REPLICAS, SELF)
BATCH = RecordBatch(10, b"x" * 40)


def partition(*, min_insync_replicas: int = 1, dead: Collection[int] = ()) -> Partition:
    config = TopicConfig(min_insync_replicas)
    return Partition(
        events(),
        SELF,
        Replica(TOPIC_ID, 100),
        config,
        replica_lag_time_max=10,
        is_alive=lambda broker_id: broker_id not in dead,
    )


def leader(
    *replica_ids: int, min_insync_replicas: int = 1, dead: Collection[int] = (), leader_epoch: int = 0
) -> Partition:
    """Return a partition that leads these replicas, or all three."""
    replicas = replica_ids or REPLICAS
    p = partition(min_insync_replicas=min_insync_replicas, dead=dead)
    p.make_leader(PartitionState(replicas, replicas, SELF, leader_epoch), now=0)
    return p


def follower() -> Partition:
    """Return a partition that follows broker 1 in leader epoch 1."""
    p = partition()
    p.make_follower(FIRST.led_by(OTHER))
    return p


def append(partition: Partition, now: float = 0) -> bool:
    """Append ten records in 40 bytes; return whether the high watermark moved."""
    partition.append_as_leader(BATCH, acks_all=False)
    return partition.maybe_increment_high_watermark(now)


def fetched(partition: Partition, replica_id: int, offset: int, now: float = 0) -> bool:
    """Let a follower fetch from an offset; return whether the high watermark moved."""
    return partition.update_follower_fetch_state(replica_id, offset, now).high


def refusal(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        call()
    return refused.value.code
