"""Deletion of records, elections, and what brokers tell of themselves."""

from typing import Final

from examples.broker.protocol.apis import (
    API_VERSIONS,
    APIS,
    DELETE_RECORDS,
    DESCRIBE_CLUSTER,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_TOPIC_PARTITIONS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
)
from examples.broker.protocol.versions import request_class
from tests.examples.broker.protocol.plain_messages import Plain, message
from tests.examples.broker.protocol.wire_messages import request_frame
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.record_batches import batch
from tests.kafka.scenarios.scenario import scenario

PREFERRED, UNCLEAN = 0, 1
_VERSION_AT: Final = slice(2, 4)


# Records


@scenario(-2, -1, 0, 2, 3, 6, 7, 2**62)
def records_deleted_before(brokers: Brokers, offset: int) -> Plain:
    topic = _filled(brokers)
    answer = _delete(brokers, topic, offset)
    return answer, brokers.offset(topic, -2), brokers.offset(topic, -1)


@scenario()
def records_deleted_less_than_before(brokers: Brokers) -> Plain:
    topic = _filled(brokers)
    return _delete(brokers, topic, 4), _delete(brokers, topic, 2)


@scenario("unknown topic", "unknown partition", "negative partition", "internal topic", "illegal name")
def records_deleted_of(brokers: Brokers, kind: str) -> Plain:
    topic = _filled(brokers)
    brokers.coordinator("group")
    name = {"unknown topic": "nowhere", "internal topic": "__consumer_offsets", "illegal name": "ü"}
    partition = {"unknown partition": 5, "negative partition": -1}.get(kind, 0)
    return _delete(brokers, name.get(kind, topic), 0, partition=partition)


@scenario("follower", "no replica")
def records_deleted_on_a(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic(replicas=((1, 2),))
    return _delete(brokers, topic, 0, to=2 if kind == "follower" else 3)


@scenario()
def records_deleted_on_three_replicas(brokers: Brokers) -> Plain:
    topic = brokers.topic(replicas=((1, 2, 3),))
    brokers.produce(topic, batch(b"1", b"2", b"3"))
    return _delete(brokers, topic, 2), brokers.fetch(topic, 2)


@scenario(*range(3))
def records_deleted_in_version(brokers: Brokers, version: int) -> Plain:
    return _delete(brokers, _filled(brokers), 2, version=version)


# Elections


@scenario(PREFERRED, UNCLEAN, 2, -1)
def election_of_type(brokers: Brokers, kind: int) -> Plain:
    topic = brokers.topic(replicas=((1, 2, 3),))
    wanted = [{"topic": topic, "partitions": [0]}]
    return brokers.ask(ELECT_LEADERS, election_type=kind, topic_partitions=wanted, timeout=10_000)


@scenario("unknown topic", "unknown partition", "twice", "none", "all")
def election_of(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic(replicas=((1, 2, 3),))
    wanted: Plain = {
        "unknown topic": [{"topic": "nowhere", "partitions": [0]}],
        "unknown partition": [{"topic": topic, "partitions": [4]}],
        "twice": [{"topic": topic, "partitions": [0, 0]}],
        "none": [],
        "all": None,
    }[kind]
    answer = brokers.ask(ELECT_LEADERS, election_type=PREFERRED, topic_partitions=wanted, timeout=10_000)
    answer["replica_election_results"] = [
        entry for entry in answer["replica_election_results"] if entry["topic"] in (topic, "nowhere")
    ]
    return answer


@scenario(*range(3))
def election_in_version(brokers: Brokers, version: int) -> Plain:
    wanted = [{"topic": brokers.topic(), "partitions": [0]}]
    return brokers.ask(ELECT_LEADERS, version, topic_partitions=wanted, timeout=10_000)


# Descriptions


@scenario(0, 1)
def cluster_in_version(brokers: Brokers, version: int) -> Plain:
    return brokers.ask(DESCRIBE_CLUSTER, version)


@scenario(1, 2, 3)
def cluster_endpoints_of_type(brokers: Brokers, kind: int) -> Plain:
    return brokers.ask(DESCRIBE_CLUSTER, endpoint_type=kind)["error_code"]


@scenario(True, False)
def cluster_with_authorized_operations(brokers: Brokers, included: bool) -> Plain:
    answer = brokers.ask(DESCRIBE_CLUSTER, include_cluster_authorized_operations=included)
    return answer["cluster_authorized_operations"]


@scenario("all", "one", "unknown topic", "unknown partition")
def reassignments_of(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic()
    wanted: Plain = {
        "all": None,
        "one": [{"name": topic, "partition_indexes": [0]}],
        "unknown topic": [{"name": "nowhere", "partition_indexes": [0]}],
        "unknown partition": [{"name": topic, "partition_indexes": [8]}],
    }[kind]
    return brokers.ask(LIST_PARTITION_REASSIGNMENTS, topics=wanted, timeout=10_000)


@scenario("one", "unknown topic", "unknown partition", "on another broker", "none")
def log_directories_of(brokers: Brokers, kind: str) -> Plain:
    topic = _filled(brokers)
    wanted = {
        "unknown topic": [{"topic": "nowhere", "partitions": [0]}],
        "unknown partition": [{"topic": topic, "partitions": [8]}],
        "none": [],
    }.get(kind, [{"topic": topic, "partitions": [0]}])
    answer = brokers.ask(DESCRIBE_LOG_DIRS, topics=wanted, to=2 if kind == "on another broker" else 1)
    for directory in answer["results"]:
        for key in ("log_dir", "total_bytes", "usable_bytes"):
            del directory[key]
    return answer


@scenario(*range(1, 5))
def log_directories_in_version(brokers: Brokers, version: int) -> Plain:
    topic = _filled(brokers)
    answer = brokers.ask(DESCRIBE_LOG_DIRS, version, topics=[{"topic": topic, "partitions": [0]}])
    return [directory["topics"] for directory in answer["results"]]


@scenario("one", "unknown", "illegal name", "twice", "two")
def topic_partitions_of(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic(replicas=((1, 2), (2, 3)))
    names = {
        "unknown": ["nowhere"],
        "illegal name": ["ü"],
        "twice": [topic, topic],
        "two": [topic, "nowhere"],
    }.get(kind, [topic])
    return brokers.ask(DESCRIBE_TOPIC_PARTITIONS, topics=[{"name": name} for name in names])


@scenario(-1, 0, 1, 2, 3)
def topic_partitions_limited_to(brokers: Brokers, most: int) -> Plain:
    topic = brokers.topic(replicas=((1,), (2,), (3,)))
    answer = brokers.ask(DESCRIBE_TOPIC_PARTITIONS, topics=[{"name": topic}], response_partition_limit=most)
    return _pages(answer)


@scenario(0, 1, 2, 3, 9, -1)
def topic_partitions_from_cursor(brokers: Brokers, partition: int) -> Plain:
    topic = brokers.topic(replicas=((1,), (2,), (3,)))
    answer = brokers.ask(
        DESCRIBE_TOPIC_PARTITIONS,
        topics=[{"name": topic}],
        cursor={"topic_name": topic, "partition_index": partition},
    )
    return _pages(answer)


@scenario("before", "after")
def topic_partitions_from_cursor_at_a_topic(brokers: Brokers, side: str) -> Plain:
    topic = brokers.topic()
    name = topic[:-1] if side == "before" else topic + "-x"
    answer = brokers.ask(
        DESCRIBE_TOPIC_PARTITIONS,
        topics=[{"name": topic}],
        cursor={"topic_name": name, "partition_index": 0},
    )
    return _pages(answer)


# Versions


@scenario(*range(5))
def api_versions_in_version(brokers: Brokers, version: int) -> Plain:
    software: dict[str, Plain] = (
        {"client_software_name": "a", "client_software_version": "1"} if version >= 3 else {}
    )
    answer = brokers.ask(API_VERSIONS, version, **software)
    # Which versions each serves is in the scenario of that name.
    answer["api_keys"] = bool(answer["api_keys"])
    return {key: answer[key] for key in ("error_code", "api_keys", "throttle_time") if key in answer}


@scenario(*range(5, 8), 99)
def api_versions_in_unknown_version(brokers: Brokers, version: int) -> Plain:
    """The answer is in version 0, so that every client can read it (KIP-511)."""
    connection = brokers.connect()
    request = message(request_class(API_VERSIONS, 3), {"client_software_name": "a"})
    frame = bytearray(request_frame(request))
    frame[_VERSION_AT] = version.to_bytes(2, "big")
    connection.send_frame(API_VERSIONS, 0, bytes(frame))
    answer = connection.receive()
    return answer["error_code"], bool(answer["api_keys"])


@scenario("", "a b", "ü", "-a", "a.b-c")
def api_versions_for_software(brokers: Brokers, name: str) -> Plain:
    answer = brokers.ask(API_VERSIONS, client_software_name=name, client_software_version="1")
    return answer["error_code"], bool(answer["api_keys"])


@scenario()
def served_versions(brokers: Brokers) -> Plain:
    """What we serve, in both clusters' versions."""
    answer = brokers.ask(API_VERSIONS, client_software_name="a", client_software_version="1")
    return {
        APIS[entry["api_key"]].name: (entry["min_version"], entry["max_version"])
        for entry in answer["api_keys"]
        if entry["api_key"] in APIS
    }


def _filled(brokers: Brokers) -> str:
    """Return a topic with six records in three batches."""
    topic = brokers.topic()
    for data in (batch(b"1", b"2"), batch(b"3", b"4", b"5"), batch(b"6")):
        assert brokers.produce(topic, data)["error_code"] == "none"
    return topic


def _delete(
    brokers: Brokers,
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    to: int = 1,
    version: int | None = None,
) -> Plain:
    entry = {"partition_index": partition, "offset": offset}
    return brokers.ask(
        DELETE_RECORDS, version, to=to, timeout=10_000, topics=[{"name": topic, "partitions": [entry]}]
    )


def _pages(answer: Plain) -> Plain:
    partitions = [
        (topic["error_code"], [partition["partition_index"] for partition in topic["partitions"]])
        for topic in answer["topics"]
    ]
    return partitions, answer["next_cursor"]
