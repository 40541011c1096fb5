"""Produce and Fetch requests with test values."""

from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.fetch.v12.response import PartitionData
from kio.schema.produce.v12 import ProduceRequest
from kio.schema.produce.v12.request import PartitionProduceData, TopicProduceData
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from examples.broker.protocol.apis import PRODUCE
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.leader_broker import Cluster

EVENTS = TopicName("events")


def produce(
    *records: tuple[int, bytes | None], acks: int = 1, timeout: float = 30, topic: TopicName = EVENTS
) -> ProduceRequest:
    return ProduceRequest(
        acks=i16(acks),
        timeout=i32Timedelta.parse(timedelta(seconds=timeout)),
        topic_data=(
            TopicProduceData(
                name=topic,
                partition_data=tuple(
                    PartitionProduceData(index=i32(index), records=None if data is None else Records(data))
                    for index, data in records
                ),
            ),
        ),
    )


async def produced(cluster: Cluster, request: ProduceRequest) -> list[tuple[int, ErrorCode, int]]:
    response = await Loopback(cluster.sessions).request(PRODUCE, request)
    assert [topic.name for topic in response.responses] == [EVENTS]
    answers = response.responses[0].partition_responses
    return [(answer.index, answer.error_code, answer.base_offset) for answer in answers]


def fetch(
    *partitions: FetchPartition,
    replica_id: int = -1,
    max_wait: float = 0,
    min_bytes: int = 1,
    max_bytes: int = 10_000,
    isolation_level: int = 0,
) -> FetchRequest:
    return FetchRequest(
        replica_id=BrokerId(replica_id),
        max_wait=i32Timedelta.parse(timedelta(seconds=max_wait)),
        min_bytes=i32(min_bytes),
        max_bytes=i32(max_bytes),
        isolation_level=i8(isolation_level),
        session_epoch=i32(0),
        topics=(FetchTopic(topic=EVENTS, partitions=partitions),),
        forgotten_topics_data=(),
    )


def at(offset: int, index: int = 0, epoch: int = -1, last_fetched_epoch: int = -1) -> FetchPartition:
    return FetchPartition(
        partition=i32(index),
        fetch_offset=i64(offset),
        current_leader_epoch=i32(epoch),
        last_fetched_epoch=i32(last_fetched_epoch),
        partition_max_bytes=i32(10_000),
    )


def partitions(response: FetchResponse) -> list[PartitionData]:
    assert response.error_code is ErrorCode.none
    return list(response.responses[0].partitions)
