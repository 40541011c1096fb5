"""The topics that bad input goes to, and valid requests in which a test sets single fields."""

from typing import Final

from tests.kafka.scenarios.answers import Plain

# TOPIC has one replica, on the leader. REPLICATED_TOPIC has two, on the leader and on a follower.
TOPIC: Final = "bad-input"
REPLICATED_TOPIC: Final = "replicated-bad-input"
HEALTHY_TOPIC: Final = "healthy"
LEADER: Final = 1
FOLLOWER: Final = 3

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


def fetch_of(topic: str = TOPIC, *, partition: Plain = None, **settings: Plain) -> dict[str, Plain]:
    wanted = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "last_fetched_epoch": -1,
        "partition_max_bytes": 1 << 20,
    }
    request = {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "topics": [{"topic": topic, "partitions": [wanted | (partition or {})]}],
    }
    return request | settings


def produce_of(
    records: bytes | None, topic: str = TOPIC, *, partition: int = 0, **settings: Plain
) -> dict[str, Plain]:
    data = {"index": partition, "records": records}
    request = {"acks": -1, "timeout": 1000, "topic_data": [{"name": topic, "partition_data": [data]}]}
    return request | settings


def join_of(group: str, **settings: Plain) -> dict[str, Plain]:
    request = {
        "group_id": group,
        "session_timeout": 1000,
        "rebalance_timeout": 1000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    return request | settings
