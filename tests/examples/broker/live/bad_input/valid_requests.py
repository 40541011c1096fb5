"""The topics that bad input goes to, and valid requests in which a test sets single fields."""

from datetime import timedelta
from typing import Any, Final

from kio.schema.fetch.v12 import FetchRequest
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.fetch.v12.response import PartitionData
from kio.schema.join_group.v9 import JoinGroupRequest
from kio.schema.join_group.v9.request import JoinGroupRequestProtocol
from kio.schema.produce.v12 import ProduceRequest
from kio.schema.produce.v12.request import PartitionProduceData, TopicProduceData
from kio.schema.produce.v12.response import PartitionProduceResponse
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from examples.broker.cluster import Cluster
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.live.bad_input.raw_client import RawClient

# TOPIC has one replica, on the leader. REPLICATED_TOPIC has two, on the leader and on a follower.
TOPIC: Final = "bad-input"
REPLICATED_TOPIC: Final = "replicated-bad-input"
LEADER: Final = 1
FOLLOWER: Final = 3

# Seconds within which a request must arrive at the broker.
READ_TIMEOUT: Final = 1.0

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


def milliseconds(count: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=count))


def fetch_request(
    topic: str = TOPIC,
    *,
    partition: int = 0,
    offset: int = 0,
    partition_max_bytes: int = 1 << 20,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    replica_id: int = -1,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchRequest:
    wanted = FetchPartition(
        partition=i32(partition),
        current_leader_epoch=i32(leader_epoch),
        fetch_offset=i64(offset),
        last_fetched_epoch=i32(last_fetched_epoch),
        partition_max_bytes=i32(partition_max_bytes),
    )
    return FetchRequest(
        replica_id=BrokerId(replica_id),
        max_wait=milliseconds(max_wait_ms),
        min_bytes=i32(min_bytes),
        max_bytes=i32(max_bytes),
        isolation_level=i8(isolation_level),
        topics=(FetchTopic(topic=TopicName(topic), partitions=(wanted,)),),
        forgotten_topics_data=(),
    )


def produce_request(
    records: bytes | None, topic: str = TOPIC, *, partition: int = 0, acks: int = -1, timeout_ms: int = 1000
) -> ProduceRequest:
    data = PartitionProduceData(index=i32(partition), records=None if records is None else Records(records))
    return ProduceRequest(
        acks=i16(acks),
        timeout=milliseconds(timeout_ms),
        topic_data=(TopicProduceData(name=TopicName(topic), partition_data=(data,)),),
    )


def join_request(
    group: str,
    *,
    member_id: str = "",
    session_timeout_ms: int = 1000,
    rebalance_timeout_ms: int = 1000,
    protocol: str = "range",
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout=milliseconds(session_timeout_ms),
        rebalance_timeout=milliseconds(rebalance_timeout_ms),
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name=protocol, metadata=b""),),
    )


def fetched(client: RawClient, **settings: Any) -> PartitionData:
    """Return the answer for the one partition of a ``fetch_request``."""
    data: PartitionData = client.ask(fetch_request(**settings)).responses[0].partitions[0]
    return data


def produced(client: RawClient, records: bytes | None, **settings: Any) -> PartitionProduceResponse:
    """Return the answer for the one partition of a ``produce_request``."""
    response = client.ask(produce_request(records, **settings))
    answer: PartitionProduceResponse = response.responses[0].partition_responses[0]
    return answer


def pending_test_fetches(cluster: Cluster) -> list[object]:
    """Return the pending fetches of TOPIC. All are those of clients, since TOPIC has no follower."""
    return [*cluster.nodes[LEADER].replicas.fetch_purgatory.operations(TopicPartition(TOPIC, 0))]
