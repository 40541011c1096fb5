"""Requests that create, enlarge and delete topics, and elect leaders."""

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from examples.broker.controller.new_topic import MAX_PARTITIONS, NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.metadata import TopicConfig
from examples.broker.protocol import apis
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import ControlledCluster
from tests.examples.broker.handlers.plain_requests import ask
from tests.examples.broker.protocol.plain_messages import Plain

THREE_SECONDS: Final = 3000
TWO_TOPICS: Final = (NewTopic("a", assignment=((0,), (1,))), NewTopic("b", assignment=((0, 1), (1, 0))))


def topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    *,
    assigned: Sequence[tuple[int, list[int]]] = (),
    configs: Mapping[str, str] | None = None,
) -> Plain:
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": [{"partition_index": index, "broker_ids": replicas} for index, replicas in assigned],
        "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
    }


async def create(cluster: ControlledCluster, *topics: Plain, validate_only: bool = False) -> dict[str, Plain]:
    answer = await ask(
        cluster.admins[0],
        apis.CREATE_TOPICS,
        topics=topics,
        timeout=THREE_SECONDS,
        validate_only=validate_only,
    )
    return {result["name"]: result for result in answer["topics"]}


async def delete(cluster: ControlledCluster, *names: str) -> dict[str, str]:
    answer = await ask(cluster.admins[0], apis.DELETE_TOPICS, topic_names=names, timeout=THREE_SECONDS)
    return errors({result["name"]: result for result in answer["responses"]})


async def add(
    cluster: ControlledCluster, totals: Sequence[tuple[str, int]], *, validate_only: bool = False
) -> dict[str, str]:
    """Add partitions to topics. The new partition of a topic that gets 2 is assigned to broker 1."""
    topics = [
        {"name": name, "count": total, "assignments": [{"broker_ids": [1]}] if total == 2 else None}
        for name, total in totals
    ]
    answer = await ask(
        cluster.admins[0],
        apis.CREATE_PARTITIONS,
        topics=topics,
        timeout=THREE_SECONDS,
        validate_only=validate_only,
    )
    return errors({result["name"]: result for result in answer["results"]})


async def elect(cluster: ControlledCluster, election: int, asked: dict[str, list[int]] | None) -> Plain:
    partitions = asked and [{"topic": name, "partitions": indexes} for name, indexes in asked.items()]
    return await ask(
        cluster.admins[2],
        apis.ELECT_LEADERS,
        election_type=election,
        topic_partitions=partitions,
        timeout=THREE_SECONDS,
    )


def errors(results: dict[str, Plain]) -> dict[str, str]:
    for result in results.values():
        assert (result["error_code"] == "none") == (result["error_message"] is None)
    return {name: result["error_code"] for name, result in results.items()}


def sizes(cluster: ControlledCluster) -> dict[str, int]:
    return {name: len(topic.partitions) for name, topic in cluster.controller.image.topics.items()}


async def test_a_created_topic_is_described(brokers: ControlledCluster) -> None:
    configs = {"min.insync.replicas": "2", "cleanup.policy": "delete"}
    result = (await create(brokers, topic("events", 4, 3, configs=configs)))["events"]
    created = brokers.controller.image.topics["events"]
    assert created.config == TopicConfig(min_insync_replicas=2)
    assert errors({"events": result}) == {"events": "none"}
    assert (result["num_partitions"], result["replication_factor"]) == (4, 3)
    assert result["topic_id"] == str(created.topic_id)
    sources = {entry["name"]: (entry["value"], entry["config_source"]) for entry in result["configs"]}
    assert sources["min.insync.replicas"] == ("2", 1)
    assert sources["cleanup.policy"] == ("delete", 5)


@pytest.mark.parametrize("validate_only", [True, False])
async def test_each_topic_is_created_or_has_its_error_and_validation_creates_nothing(
    brokers: ControlledCluster, validate_only: bool
) -> None:
    results = await create(
        brokers,
        topic("good", assigned=[(1, [2, 0]), (0, [1, 2])]),
        topic("gap", assigned=[(0, [0]), (2, [1])]),
        topic("repeated", assigned=[(0, [0]), (0, [1])]),
        topic("numbers", 2, assigned=[(0, [0]), (1, [1])]),
        topic("factor", -1, 1, assigned=[(0, [0]), (1, [1])]),
        topic("replicas", 4, 5),
        topic("a b"),
        topic("odd", configs={"no.such.setting": "1"}),
        topic("twice"),
        topic("twice"),
        topic(OFFSETS_TOPIC, 1),
        validate_only=validate_only,
    )
    assert errors(results) == {
        "good": "none",
        "gap": "invalid_replica_assignment",
        "repeated": "invalid_replica_assignment",
        "numbers": "invalid_request",
        "factor": "invalid_request",
        "replicas": "invalid_replication_factor",
        "a b": "invalid_topic_exception",
        "odd": "invalid_config",
        "twice": "invalid_request",
        OFFSETS_TOPIC: "invalid_topic_exception",
    }
    assert results["good"]["num_partitions"] == 2
    assert "no.such.setting" in results["odd"]["error_message"]
    created = brokers.controller.image.topics
    assert list(created) == ([] if validate_only else ["good"])
    assert [state.replicas for topic in created.values() for state in topic.partitions] == [
        *([] if validate_only else [(1, 2), (2, 0)])
    ]


async def test_topics_with_too_many_partitions_together_are_refused(brokers: ControlledCluster) -> None:
    assigned = topic("b", assigned=[(index, [0]) for index in range(2)])
    topics = (topic("a", MAX_PARTITIONS - 1), assigned, topic("negative", -10))
    for validate_only in (True, False):
        results = await create(brokers, *topics, validate_only=validate_only)
        assert {result["error_code"] for result in results.values()} == {"policy_violation"}
    assert brokers.controller.image.topics == {}
    most = await create(brokers, *topics[:1], topic("b"), validate_only=True)
    assert errors(most) == {"a": "none", "b": "none"}
    await create(brokers, topic("a"), topic("b"))
    half = MAX_PARTITIONS // 2
    totals = [("a", half + 1), ("b", half + 2)]
    assert await add(brokers, totals) == dict.fromkeys("ab", "policy_violation")
    assert sizes(brokers) == {"a": 1, "b": 1}


async def test_a_creation_not_in_the_brokers_metadata_times_out_at_the_clients_timeout(
    virtual_time: VirtualTimeLoop, brokers: ControlledCluster
) -> None:
    brokers.pause(0)
    assert errors(await create(brokers, topic("events"))) == {"events": "request_timed_out"}
    assert round(virtual_time.time(), 2) == 3
    assert await delete(brokers, "events") == {"events": "none"}


async def test_each_deleted_topic_is_answered_and_one_named_twice_is_not_deleted(
    brokers: ControlledCluster,
) -> None:
    await create(brokers, topic("a"), topic("b"), topic("c"))
    assert await delete(brokers, "a", "missing", "c", "c") == {
        "a": "none",
        "missing": "unknown_topic_or_partition",
        "c": "invalid_request",
    }
    assert list(brokers.controller.image.topics) == ["b", "c"]
    assert await delete(brokers) == {}


@pytest.mark.parametrize("validate_only", [True, False])
async def test_each_topic_gets_its_partitions_or_its_error_and_validation_adds_none(
    brokers: ControlledCluster, validate_only: bool
) -> None:
    await brokers.admins[0].create([NewTopic(name) for name in ("a", "b", "c", "d", OFFSETS_TOPIC)], 5)
    totals = [("a", 2), ("b", 1), ("c", 3), ("d", 3), ("d", 4), ("missing", 2), (OFFSETS_TOPIC, 9)]
    assert await add(brokers, totals, validate_only=validate_only) == {
        "a": "none",
        "b": "invalid_partitions",
        "c": "none",
        "d": "invalid_request",
        "missing": "unknown_topic_or_partition",
        OFFSETS_TOPIC: "invalid_topic_exception",
    }
    added = {} if validate_only else {"a": 2, "c": 3}
    assert sizes(brokers) == {"a": 1, "b": 1, "c": 1, "d": 1, OFFSETS_TOPIC: 1} | added
    if not validate_only:
        assert brokers.partition(TopicPartition("a", 1)).replicas == (1,)


async def test_no_partition_is_being_reassigned(brokers: ControlledCluster) -> None:
    answer = await ask(brokers.admins[0], apis.LIST_PARTITION_REASSIGNMENTS, topics=None)
    assert (answer["error_code"], answer["topics"]) == ("none", [])


async def test_each_election_has_its_answer_under_its_topic(brokers: ControlledCluster) -> None:
    await brokers.admins[2].create(TWO_TOPICS, 5)
    for broker_id in (1, 0):
        brokers.controller.fence(broker_id)
    brokers.controller.heartbeat(1)
    answer = await elect(brokers, 1, {"b": [0, 1, 2], "a": [1, 0, 2]})
    assert answer["error_code"] == "none"
    found = {
        result["topic"]: {entry["partition_id"]: entry["error_code"] for entry in result["partition_result"]}
        for result in answer["replica_election_results"]
    }
    assert found == {
        "a": {0: "eligible_leaders_not_available", 1: "election_not_needed", 2: "unknown_topic_or_partition"},
        "b": {0: "none", 1: "none", 2: "unknown_topic_or_partition"},
    }
    (of_b,) = (result for result in answer["replica_election_results"] if result["topic"] == "b")
    messages = {entry["partition_id"]: entry["error_message"] for entry in of_b["partition_result"]}
    assert messages[0] is None
    assert "b-2" in messages[2]
    assert brokers.partition(TopicPartition("b", 0)).leader == 1


async def test_without_named_partitions_all_that_need_it_are_elected(brokers: ControlledCluster) -> None:
    await brokers.admins[2].create(TWO_TOPICS, 5)
    brokers.controller.fence(0)
    answer = await elect(brokers, 0, None)
    assert [
        (result["topic"], [entry["partition_id"] for entry in result["partition_result"]])
        for result in answer["replica_election_results"]
    ] == [("a", [0]), ("b", [0])]


async def test_an_unknown_election_type_is_refused(brokers: ControlledCluster) -> None:
    answer = await elect(brokers, 2, None)
    assert (answer["error_code"], answer["replica_election_results"]) == ("invalid_request", [])
