"""A broker whose disk is full acknowledges nothing that is not in the files, and loses nothing that is."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.partition import Partition
from examples.broker.replication.produce import ProduceParams
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.disk import Disk
from examples.broker.storage.wire_batch import WireRecordBatch
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.full_disk import full_disk
from tests.examples.broker.leader_broker import events, image_of
from tests.examples.broker.wire_batches import wire_batch

EVENTS = events()
ALONE = PartitionState((0,), (0,), leader=0)
LED_ELSEWHERE = PartitionState((0, 1), (0, 1), leader=1)


@pytest.fixture
async def broker(tmp_path: Path, virtual_time: VirtualTimeLoop) -> AsyncIterator[ReplicaManager]:
    async with ReplicaManager.running(0, disk=Disk(tmp_path)) as broker:
        broker.apply(image_of([ALONE]), [EVENTS])
        yield broker


def batch(sequence: int) -> WireRecordBatch:
    return WireRecordBatch.parse(wire_batch(b"value", producer=(7, 0, sequence)))


async def produce(broker: ReplicaManager, sequence: int) -> tuple[ErrorCode, int]:
    answer = (await broker.append(ProduceParams(), {EVENTS: batch(sequence)}))[EVENTS]
    return answer.error, answer.base_offset


async def test_a_producer_gets_a_storage_error_and_its_retry_succeeds_once_there_is_room(
    broker: ReplicaManager, tmp_path: Path
) -> None:
    assert await produce(broker, 0) == (ErrorCode.none, 0)
    with full_disk(room=10):
        for _ in range(2):
            assert await produce(broker, 1) == (ErrorCode.kafka_storage_error, -1)
        assert broker.partitions.leader(EVENTS).high_watermark == 1
    assert await produce(broker, 1) == (ErrorCode.none, 1)
    assert await produce(broker, 1) == (ErrorCode.none, 1), "a retry"
    assert restarted(tmp_path, ALONE).log.log_end_offset == 2


async def test_a_first_write_that_fails_is_repeated_whole(broker: ReplicaManager, tmp_path: Path) -> None:
    with full_disk():
        assert await produce(broker, 0) == (ErrorCode.kafka_storage_error, -1)
    assert await produce(broker, 0) == (ErrorCode.none, 0)
    assert restarted(tmp_path, ALONE).log.log_end_offset == 1


def test_a_follower_acknowledges_what_is_in_its_files_alone(tmp_path: Path) -> None:
    follower = restarted(tmp_path, LED_ELSEWHERE)
    batches = [batch(sequence).at(sequence, 1) for sequence in range(4)]
    follower.local.append_as_follower(batches[:1], 1, 0)
    room = batches[1].size_in_bytes + 5
    with full_disk(room), pytest.raises(ApiError, match="KAFKA_STORAGE_ERROR"):
        follower.local.append_as_follower(batches[1:], 4, 0)
    assert (follower.log.log_end_offset, follower.high_watermark) == (2, 1)
    assert restarted(tmp_path, LED_ELSEWHERE).log.log_end_offset == 2
    follower.local.append_as_follower(batches[2:], 4, 0)
    assert restarted(tmp_path, LED_ELSEWHERE).log.log_end_offset == 4


def restarted(path: Path, state: PartitionState) -> Partition:
    """The partition on a broker that finds these files."""
    partitions = HostedPartitions(0, disk=Disk(path))
    partitions.apply(image_of([state]), [EVENTS], now=0)
    partition = partitions.get(EVENTS)
    assert partition is not None
    return partition
