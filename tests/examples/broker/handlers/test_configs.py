"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: requests and responses."""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import FIXED, OFFSETS_TOPIC, ClusterDefaults
from examples.broker.handlers.alter_configs import Operation
from examples.broker.handlers.configs import ResourceType
from examples.broker.metadata import TopicConfig
from examples.broker.protocol import apis
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import ControlledCluster
from tests.examples.broker.handlers.plain_requests import ask
from tests.examples.broker.protocol.plain_messages import Plain

TOPIC, BROKER, GROUP = ResourceType.TOPIC, ResourceType.BROKER, 32
SET, DELETE, APPEND, SUBTRACT = Operation
DEFAULTS: Final = TopicConfig(min_insync_replicas=2)
OWN: Final = TopicConfig(segment_bytes=500, delete_retention_ms=900)


@pytest.fixture
async def brokers(virtual_time: VirtualTimeLoop) -> AsyncIterator[ControlledCluster]:
    """Three brokers, a topic with settings of its own, one with the defaults, and an internal one."""
    async with ControlledCluster.running(defaults=ClusterDefaults(topic_config=DEFAULTS)) as cluster:
        topics = [NewTopic("events", config=OWN), NewTopic("plain"), NewTopic(OFFSETS_TOPIC)]
        await cluster.admins[1].create(topics, 5)
        yield cluster


def config(cluster: ControlledCluster, topic: str = "events") -> TopicConfig:
    return cluster.controller.image.topics[topic].config


async def describe(cluster: ControlledCluster, kind: int, name: str, keys: list[str] | None = None) -> Plain:
    asked = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    answer = await ask(cluster.admins[1], apis.DESCRIBE_CONFIGS, resources=[asked])
    (result,) = answer["results"]
    assert (result["resource_type"], result["resource_name"]) == (kind, name)
    return result


def values(result: Plain) -> dict[str, str | None]:
    assert (result["error_code"], result["error_message"]) == ("none", "")
    return {entry["name"]: entry["value"] for entry in result["configs"]}


async def replace(
    cluster: ControlledCluster,
    *settings: tuple[str, str | None],
    name: str = "events",
    kind: int = TOPIC,
    validate_only: bool = False,
) -> str:
    configs = [{"name": key, "value": value} for key, value in settings]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    answer = await ask(
        cluster.admins[0], apis.ALTER_CONFIGS, resources=[resource], validate_only=validate_only
    )
    (result,) = answer["responses"]
    assert (result["resource_type"], result["resource_name"]) == (kind, name)
    assert (result["error_code"] == "none") == (result["error_message"] is None)
    return str(result["error_code"])


def changing(*operations: tuple[str, int, str | None], name: str = "events", kind: int = TOPIC) -> Plain:
    configs = [
        {"name": key, "config_operation": operation, "value": value} for key, operation, value in operations
    ]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


async def change(cluster: ControlledCluster, *resources: Plain, validate_only: bool = False) -> list[str]:
    answer = await ask(
        cluster.admins[0], apis.INCREMENTAL_ALTER_CONFIGS, resources=resources, validate_only=validate_only
    )
    asked = [resource["resource_name"] for resource in resources]
    assert [result["resource_name"] for result in answer["responses"]] == asked
    return [result["error_code"] for result in answer["responses"]]


async def test_a_topics_own_settings_have_another_source_and_fixed_ones_are_read_only(
    brokers: ControlledCluster,
) -> None:
    result = await describe(brokers, TOPIC, "events")
    assert values(result)["segment.bytes"] == "500"
    sources = {entry["name"]: entry["config_source"] for entry in result["configs"]}
    own = {"segment.bytes", "delete.retention.ms", "min.insync.replicas"}
    assert {name for name, source in sources.items() if source == 1} == own
    assert set(sources.values()) == {1, 5}
    assert {entry["name"] for entry in result["configs"] if entry["read_only"]} == FIXED.keys()


async def test_only_the_requested_settings_are_returned(brokers: ControlledCluster) -> None:
    some = await describe(brokers, TOPIC, "events", ["segment.bytes", "no.such.setting"])
    assert values(some) == {"segment.bytes": "500"}
    every = await describe(brokers, TOPIC, "events", [])
    assert values(every) == values(await describe(brokers, TOPIC, "events"))


async def test_a_broker_describes_its_configuration_which_is_read_only(brokers: ControlledCluster) -> None:
    described = await describe(brokers, BROKER, "1")
    settings = values(described)
    assert (settings["broker.id"], settings["broker.session.timeout.ms"]) == ("1", "9000")
    assert settings["auto.create.topics.enable"] == "true"
    assert all(entry["read_only"] for entry in described["configs"])
    assert values(await describe(brokers, BROKER, "")) == settings


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "missing", "unknown_topic_or_partition"),
        (TOPIC, "not/a/name", "invalid_topic_exception"),
        (BROKER, "0", "invalid_request"),
        (BROKER, "one", "invalid_request"),
        (8, "logger", "invalid_request"),
    ],
)
async def test_a_resource_without_a_configuration_is_refused(
    brokers: ControlledCluster, kind: int, name: str, error: str
) -> None:
    result = await describe(brokers, kind, name)
    assert (result["error_code"], result["configs"]) == (error, [])
    assert name in result["error_message"] or kind == 8


async def test_a_replaced_configuration_has_its_defaults_in_all_that_is_not_named(
    brokers: ControlledCluster,
) -> None:
    settings = (("retention.ms", "60000"), ("compression.type", "gzip"))
    assert await replace(brokers, *settings, validate_only=True) == "none"
    assert config(brokers) == OWN
    assert await replace(brokers, *settings) == "none"
    assert config(brokers) == TopicConfig(min_insync_replicas=2, retention_ms=60_000, compression_type="gzip")


async def test_a_changed_setting_leaves_the_others_and_a_deleted_one_has_its_default_again(
    brokers: ControlledCluster,
) -> None:
    resource = changing(
        ("retention.ms", SET, "60000"),
        ("min.insync.replicas", DELETE, None),
        ("delete.retention.ms", DELETE, "ignored"),
        ("no.such.setting", DELETE, None),
    )
    assert await change(brokers, resource, validate_only=True) == ["none"]
    assert config(brokers) == OWN
    assert await change(brokers, resource) == ["none"]
    assert config(brokers) == TopicConfig(min_insync_replicas=2, segment_bytes=500, retention_ms=60_000)


async def test_a_list_can_be_appended_to_while_its_value_stays_supported(brokers: ControlledCluster) -> None:
    for policy, operation, error in [
        ("delete", APPEND, "none"),
        ("compact", SUBTRACT, "none"),
        ("delete", SUBTRACT, "invalid_config"),
        ("compact", APPEND, "invalid_config"),
    ]:
        assert await change(brokers, changing(("cleanup.policy", operation, policy))) == [error]
    assert config(brokers) == OWN


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (changing(("segment.bytes", SET, "1")), "invalid_config"),
        (changing(("no.such.setting", SET, "1")), "invalid_config"),
        (changing(("segment.bytes", APPEND, "500")), "invalid_config"),
        (changing(("segment.bytes", SUBTRACT, "500")), "invalid_config"),
        (changing(("segment.bytes", SET, None)), "invalid_request"),
        (changing(("segment.bytes", 4, "500")), "invalid_request"),
        (changing(("segment.bytes", SET, "600"), ("segment.bytes", DELETE, None)), "invalid_request"),
        (changing(name="missing"), "unknown_topic_or_partition"),
        (changing(name="not/a/name"), "invalid_topic_exception"),
        (changing(name=OFFSETS_TOPIC), "invalid_topic_exception"),
        (changing(("log.segment.bytes", SET, "500"), name="0", kind=BROKER), "invalid_request"),
        (changing(kind=GROUP), "invalid_request"),
    ],
    ids=str,
)
async def test_an_impossible_change_alters_nothing(
    brokers: ControlledCluster, resource: Plain, error: str
) -> None:
    before = brokers.controller.image
    assert await change(brokers, resource) == [error]
    assert brokers.controller.image is before


async def test_an_impossible_replacement_alters_nothing(brokers: ControlledCluster) -> None:
    before = brokers.controller.image
    assert await replace(brokers, ("segment.bytes", None)) == "invalid_request"
    assert await replace(brokers, ("retention.ms", "1000"), ("retention.ms", "2000")) == "invalid_request"
    assert await replace(brokers, ("cleanup.policy", "compact")) == "invalid_config"
    assert await replace(brokers, name="missing") == "unknown_topic_or_partition"
    assert await replace(brokers, name="0", kind=BROKER) == "invalid_request"
    assert brokers.controller.image is before


async def test_an_error_is_the_answer_of_its_own_resource(brokers: ControlledCluster) -> None:
    retained = ("retention.bytes", SET, "1000")
    twice = changing(retained, name="plain")
    assert await change(brokers, twice, changing(retained), twice) == [
        "invalid_request",
        "none",
        "invalid_request",
    ]
    assert (config(brokers).retention_bytes, config(brokers, "plain").retention_bytes) == (1000, -1)
