"""Metadata, DescribeCluster and DescribeTopicPartitions: requests and responses."""

from typing import Final
from uuid import UUID

import pytest

from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC, ClusterDefaults
from examples.broker.handlers.cluster_metadata import (
    MOST_PARTITIONS,
)
from examples.broker.protocol import apis
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import ControlledCluster
from tests.examples.broker.handlers.plain_requests import ask
from tests.examples.broker.protocol.plain_messages import Plain

NOBODY: Final = UUID(int=7)


async def known(
    cluster: ControlledCluster, *names: str | UUID, broker: int = 0, create: bool = False
) -> Plain:
    """Request the metadata of topics by name or id."""
    topics = [
        {"topic_id": name, "name": None} if isinstance(name, UUID) else {"topic_id": None, "name": name}
        for name in names
    ]
    return await ask(cluster.admins[broker], apis.METADATA, topics=topics, allow_auto_topic_creation=create)


async def topic(cluster: ControlledCluster, name: str | UUID, *, create: bool = False) -> Plain:
    (found,) = (await known(cluster, name, create=create))["topics"]
    return found


async def test_clients_get_all_live_brokers_and_this_one_as_the_controller(
    brokers: ControlledCluster,
) -> None:
    for broker in range(3):
        answer = await known(brokers, broker=broker)
        addresses = [(entry["node_id"], entry["host"], entry["port"]) for entry in answer["brokers"]]
        assert addresses == [(0, "127.0.0.1", 9092), (1, "127.0.0.1", 9093), (2, "127.0.0.1", 9094)]
        assert answer["controller_id"] == broker
        assert (answer["cluster_id"], answer["topics"]) == (brokers.controller.cluster_id, [])


async def test_a_partition_tells_its_replicas_and_has_an_error_while_nobody_leads(
    brokers: ControlledCluster,
) -> None:
    await brokers.admins[0].create([NewTopic("events", assignment=((0, 1), (0, 2)))], 5)
    for broker_id in (0, 2):
        brokers.controller.fence(broker_id)
    await brokers.settle()
    answer = await known(brokers, "events")
    assert [entry["node_id"] for entry in answer["brokers"]] == [1]
    assert answer["controller_id"] == 1
    (found,) = answer["topics"]
    described = await ask(
        brokers.admins[0],
        apis.DESCRIBE_TOPIC_PARTITIONS,
        topics=[{"name": "events"}],
        response_partition_limit=10,
    )
    for one in (found, *described["topics"]):
        led, lost = one["partitions"]
        assert (one["error_code"], one["is_internal"]) == ("none", False)
        assert one["topic_id"] == str(brokers.controller.image.topics["events"].topic_id)
        assert (led["error_code"], led["leader_id"], led["leader_epoch"]) == ("none", 1, 1)
        assert (led["replica_nodes"], led["isr_nodes"], led["offline_replicas"]) == ([0, 1], [1], [0])
        assert (lost["error_code"], lost["leader_id"]) == ("leader_not_available", -1)
        assert lost["offline_replicas"] == [0, 2]
    assert (lost["eligible_leader_replicas"], lost["last_known_elr"]) == ([], [])


async def test_a_topic_can_be_asked_for_by_its_id(brokers: ControlledCluster) -> None:
    await brokers.admins[0].create([NewTopic("a"), NewTopic("b")], 5)
    topic_id = brokers.controller.image.topics["b"].topic_id
    found = await topic(brokers, topic_id)
    assert (found["name"], found["topic_id"], found["error_code"]) == ("b", str(topic_id), "none")
    missing = await topic(brokers, NOBODY, create=True)
    assert (missing["name"], missing["topic_id"]) == (None, str(NOBODY))
    assert missing["error_code"] == "unknown_topic_id"


@pytest.mark.parametrize("allowed", [True, False])
async def test_an_unknown_topic_is_created_if_the_client_and_the_cluster_allow_it(
    virtual_time: VirtualTimeLoop, allowed: bool
) -> None:
    defaults = ClusterDefaults(num_partitions=2, auto_create_topics_enable=allowed)
    async with ControlledCluster.running(defaults=defaults) as cluster:
        assert (await topic(cluster, "a"))["error_code"] == "unknown_topic_or_partition"
        assert (await topic(cluster, "a b"))["error_code"] == "invalid_topic_exception"
        assert cluster.controller.image.topics == {}
        found = (await known(cluster, "a b", "a", "a", create=True))["topics"]
        assert [(entry["name"], entry["error_code"], len(entry["partitions"])) for entry in found] == [
            ("a b", "invalid_topic_exception", 0),
            ("a", "none", 2) if allowed else ("a", "unknown_topic_or_partition", 0),
        ]
        assert await topic(cluster, "a", create=True) == found[1]


@pytest.mark.parametrize("broker", range(3))
async def test_describing_the_cluster_lists_its_live_brokers(brokers: ControlledCluster, broker: int) -> None:
    brokers.controller.fence(2)
    await brokers.settle()
    answer = await ask(brokers.admins[broker], apis.DESCRIBE_CLUSTER, endpoint_type=1)
    assert [(entry["broker_id"], entry["port"]) for entry in answer["brokers"]] == [(0, 9092), (1, 9093)]
    assert answer["cluster_id"] == brokers.controller.cluster_id
    assert answer["controller_id"] == (broker if broker < 2 else 0)
    assert answer["error_code"] == "none"


@pytest.mark.parametrize(
    ("endpoint_type", "error"), [(2, "mismatched_endpoint_type"), (3, "unsupported_endpoint_type")]
)
async def test_controllers_cannot_be_described(
    brokers: ControlledCluster, endpoint_type: int, error: str
) -> None:
    answer = await ask(brokers.admins[0], apis.DESCRIBE_CLUSTER, endpoint_type=endpoint_type)
    assert (answer["error_code"], answer["brokers"]) == (error, [])


async def page(
    cluster: ControlledCluster, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> tuple[dict[str, list[int]], tuple[str, int] | None]:
    """Return the partitions of each topic in one response, and its cursor."""
    answer = await ask(
        cluster.admins[0],
        apis.DESCRIBE_TOPIC_PARTITIONS,
        topics=[{"name": name} for name in names],
        response_partition_limit=limit,
        cursor=cursor and {"topic_name": cursor[0], "partition_index": cursor[1]},
    )
    found = {
        topic["name"]: [partition["partition_index"] for partition in topic["partitions"]]
        for topic in answer["topics"]
    }
    following = answer["next_cursor"]
    return found, following and (following["topic_name"], following["partition_index"])


async def test_all_topics_are_listed_and_described_in_order_when_none_is_named(
    brokers: ControlledCluster,
) -> None:
    await brokers.admins[0].create([NewTopic("b"), NewTopic("a", 2), NewTopic(OFFSETS_TOPIC)], 5)
    every = await ask(brokers.admins[0], apis.METADATA, topics=None)
    internal = {topic["name"]: topic["is_internal"] for topic in every["topics"]}
    assert internal == {"a": False, "b": False, OFFSETS_TOPIC: True}
    assert await page(brokers) == ({OFFSETS_TOPIC: [0], "a": [0, 1], "b": [0]}, None)
    topics = [{"name": name} for name in ("missing", "a", "a", "a b")]
    answer = await ask(
        brokers.admins[0], apis.DESCRIBE_TOPIC_PARTITIONS, topics=topics, response_partition_limit=10
    )
    assert {topic["name"]: topic["error_code"] for topic in answer["topics"]} == {
        "a": "none",
        "a b": "invalid_topic_exception",
        "missing": "unknown_topic_or_partition",
    }


async def test_a_page_ends_at_the_limit_and_its_cursor_begins_the_next(brokers: ControlledCluster) -> None:
    await brokers.admins[0].create([NewTopic("a", 3), NewTopic("b", 2), NewTopic("c", 1)], 5)
    pages = []
    found, cursor = await page(brokers, "missing", "c", "b", "a", limit=2)
    while cursor is not None:
        pages.append(found)
        found, cursor = await page(brokers, "missing", "c", "b", "a", limit=2, cursor=cursor)
    assert [*pages, found] == [{"a": [0, 1]}, {"a": [2], "b": [0]}, {"b": [1], "c": [0], "missing": []}]


async def test_a_page_that_is_full_at_the_end_of_a_topic_goes_on_with_the_next_topic(
    brokers: ControlledCluster,
) -> None:
    await brokers.admins[0].create([NewTopic("a", 2), NewTopic("b", 2)], 5)
    assert await page(brokers, limit=2) == ({"a": [0, 1]}, ("b", 0))
    # The topic of the cursor was deleted in between.
    assert await page(brokers, limit=2, cursor=("aa", 1)) == ({"b": [0, 1]}, None)


async def test_absurd_limits_and_cursors_are_brought_into_range(brokers: ControlledCluster) -> None:
    await brokers.admins[0].create([NewTopic("a", MOST_PARTITIONS + 1)], 5)
    assert (await page(brokers, limit=-5))[0] == {"a": [0]}
    found, cursor = await page(brokers, limit=2**31 - 1, cursor=("a", -(2**31)))
    assert (len(found["a"]), cursor) == (MOST_PARTITIONS, ("a", MOST_PARTITIONS))
    assert (await page(brokers, cursor=("a", 2**31 - 1)))[0] == {"a": []}
