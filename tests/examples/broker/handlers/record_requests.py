"""Produce and Fetch requests with test values."""

from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.request import FetchPartition
from kio.schema.fetch.v12.response import PartitionData
from kio.schema.produce.v12 import ProduceRequest
from kio.schema.types import TopicName

from examples.broker.protocol.apis import PRODUCE
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.leader_broker import Cluster
from tests.examples.broker.protocol.plain_messages import message

EVENTS: Final = TopicName("events")


def produce(
    *records: tuple[int, bytes | None], acks: int = 1, timeout: float = 30, topic: str = EVENTS
) -> ProduceRequest:
    partitions = [{"index": index, "records": data} for index, data in records]
    data = [{"name": topic, "partition_data": partitions}]
    return message(ProduceRequest, {"acks": acks, "timeout": timeout * 1000, "topic_data": data})


async def produced(cluster: Cluster, request: ProduceRequest) -> list[tuple[int, ErrorCode, int]]:
    response = await Loopback(cluster.sessions).request(PRODUCE, request)
    assert [topic.name for topic in response.responses] == [request.topic_data[0].name]
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
    values = {
        "replica_id": replica_id,
        "max_wait": max_wait * 1000,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": isolation_level,
        "session_epoch": 0,
        "topics": [{"topic": EVENTS, "partitions": partitions}],
    }
    return message(FetchRequest, values)


def at(offset: int, index: int = 0, epoch: int = -1, last_fetched_epoch: int = -1) -> FetchPartition:
    values = {
        "partition": index,
        "fetch_offset": offset,
        "current_leader_epoch": epoch,
        "last_fetched_epoch": last_fetched_epoch,
        "partition_max_bytes": 10_000,
    }
    return message(FetchPartition, values)


def partitions(response: FetchResponse) -> list[PartitionData]:
    assert response.error_code is ErrorCode.none
    return list(response.responses[0].partitions)
