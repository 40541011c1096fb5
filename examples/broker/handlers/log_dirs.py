"""DescribeLogDirs: where this broker has its replicas, and how large they are."""

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import Final

from kio.schema.describe_log_dirs.v4 import DescribeLogDirsRequest, DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v4.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from examples.broker.errors import ErrorCode
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition

MEMORY: Final = "memory"
"""Stands for the directory, since the replicas are in memory."""
_UNKNOWN: Final = -1


async def describe_log_dirs(
    replicas: ReplicaManager, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Return the one directory of this broker, with the requested replicas that it has, or all of them."""
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions
        }
    hosted = [
        partition
        for partition in replicas.partitions.hosted()
        if wanted is None or partition.topic_partition in wanted
    ]
    return DescribeLogDirsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        results=(
            DescribeLogDirsResult(
                error_code=ErrorCode.none,
                log_dir=MEMORY,
                topics=_topics(hosted),
                total_bytes=i64(_UNKNOWN),
                usable_bytes=i64(_UNKNOWN),
            ),
        ),
    )


def _topics(partitions: Iterable[Partition]) -> tuple[DescribeLogDirsTopic, ...]:
    by_name = sorted(partitions, key=attrgetter("topic_partition"))
    return tuple(
        DescribeLogDirsTopic(
            name=TopicName(name),
            partitions=tuple(
                DescribeLogDirsPartition(
                    partition_index=i32(partition.topic_partition.partition),
                    partition_size=i64(partition.log.size_in_bytes),
                    # As in Kafka, how far the log is behind the high watermark, and not behind the leader.
                    offset_lag=i64(max(0, partition.high_watermark - partition.log.log_end_offset)),
                    is_future_key=False,
                )
                for partition in group
            ),
        )
        for name, group in groupby(by_name, lambda partition: partition.topic_partition.topic)
    )
