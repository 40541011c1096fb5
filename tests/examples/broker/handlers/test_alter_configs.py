"""AlterConfigs and IncrementalAlterConfigs: requests and responses."""

import pytest
from kio.schema.alter_configs.v2 import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterableConfig as Replacement
from kio.schema.alter_configs.v2.request import AlterConfigsResource as Replaced
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8

from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC, ClusterDefaults
from examples.broker.handlers.alter_configs import Operation, alter_configs, incremental_alter_configs
from examples.broker.handlers.configs import ResourceType
from examples.broker.metadata import TopicConfig
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import CONTEXT, ControlledCluster

TOPIC, BROKER, GROUP = ResourceType.TOPIC, ResourceType.BROKER, 32
SET, DELETE, APPEND, SUBTRACT = Operation
DEFAULTS = ClusterDefaults(topic_config=TopicConfig(min_insync_replicas=2))


def config(cluster: ControlledCluster, topic: str = "events") -> TopicConfig:
    return cluster.controller.image.topics[topic].config


async def replace(
    cluster: ControlledCluster,
    settings: dict[str, str | None],
    name: str = "events",
    *,
    kind: int = TOPIC,
    validate_only: bool = False,
) -> ErrorCode:
    configs = tuple(Replacement(name=key, value=value) for key, value in settings.items())
    resource = Replaced(resource_type=i8(kind), resource_name=name, configs=configs)
    request = AlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (result,) = (await alter_configs(cluster.admins[0], CONTEXT, request)).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert (result.error_code is ErrorCode.none) == (result.error_message is None)
    return result.error_code


def changing(
    *operations: tuple[str, int, str | None], name: str = "events", kind: int = TOPIC
) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=i8(kind),
        resource_name=name,
        configs=tuple(
            AlterableConfig(name=key, config_operation=i8(operation), value=value)
            for key, operation, value in operations
        ),
    )


async def change(
    cluster: ControlledCluster, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[ErrorCode]:
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    response = await incremental_alter_configs(cluster.admins[0], CONTEXT, request)
    assert [result.resource_name for result in response.responses] == [r.resource_name for r in resources]
    return [result.error_code for result in response.responses]


async def test_a_replaced_configuration_has_its_defaults_in_all_that_is_not_named(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running(defaults=DEFAULTS) as cluster:
        own = TopicConfig(segment_bytes=500, delete_retention_ms=900)
        await cluster.admins[0].create([NewTopic("events", config=own)], 5)
        settings: dict[str, str | None] = {"retention.ms": "60000", "compression.type": "gzip"}
        assert await replace(cluster, settings, validate_only=True) is ErrorCode.none
        assert config(cluster) == own
        assert await replace(cluster, settings) is ErrorCode.none
        assert config(cluster) == TopicConfig(
            min_insync_replicas=2, retention_ms=60_000, compression_type="gzip"
        )


async def test_a_changed_setting_leaves_the_others_as_they_are(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running(defaults=DEFAULTS) as cluster:
        await cluster.admins[0].create([NewTopic("events", config=TopicConfig(segment_bytes=500))], 5)
        resource = changing(("retention.ms", SET, "60000"), ("delete.retention.ms", SET, "1"))
        assert await change(cluster, resource, validate_only=True) == [ErrorCode.none]
        assert config(cluster) == TopicConfig(segment_bytes=500)
        assert await change(cluster, resource) == [ErrorCode.none]
        changed = TopicConfig(segment_bytes=500, retention_ms=60_000, delete_retention_ms=1)
        assert config(cluster) == changed


async def test_a_deleted_setting_has_its_default_again(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running(defaults=DEFAULTS) as cluster:
        await cluster.admins[0].create([NewTopic("events", config=TopicConfig(segment_bytes=500))], 5)
        resource = changing(("min.insync.replicas", DELETE, None), ("segment.bytes", DELETE, "ignored"))
        assert await change(cluster, resource) == [ErrorCode.none]
        assert config(cluster) == DEFAULTS.topic_config


async def test_only_a_list_can_be_appended_to(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events")], 5)
        for policy, operation, error in [
            ("delete", APPEND, ErrorCode.none),
            ("compact", SUBTRACT, ErrorCode.none),
            ("delete", SUBTRACT, ErrorCode.invalid_config),
        ]:
            assert await change(cluster, changing(("cleanup.policy", operation, policy))) == [error]
        for operation in (APPEND, SUBTRACT):
            resource = changing(("segment.bytes", operation, "500"))
            assert await change(cluster, resource) == [ErrorCode.invalid_config]
        assert config(cluster) == TopicConfig()


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (changing(("segment.bytes", SET, "1")), ErrorCode.invalid_config),
        (changing(("no.such.setting", SET, "1")), ErrorCode.invalid_config),
        (changing(("segment.bytes", SET, None)), ErrorCode.invalid_request),
        (changing(("segment.bytes", 4, "500")), ErrorCode.invalid_request),
        (changing(("segment.bytes", SET, "500"), ("segment.bytes", DELETE, None)), ErrorCode.invalid_request),
        (changing(name="missing"), ErrorCode.unknown_topic_or_partition),
        (changing(name="not/a/name"), ErrorCode.invalid_topic_exception),
        (changing(name=OFFSETS_TOPIC), ErrorCode.invalid_topic_exception),
        (changing(("log.segment.bytes", SET, "500"), name="0", kind=BROKER), ErrorCode.invalid_request),
        (changing(kind=GROUP), ErrorCode.invalid_request),
    ],
    ids=str,
)
async def test_an_impossible_change_alters_nothing(
    virtual_time: VirtualTimeLoop, resource: AlterConfigsResource, error: ErrorCode
) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events"), NewTopic(OFFSETS_TOPIC)], 5)
        before = cluster.controller.image
        assert await change(cluster, resource) == [error]
        assert cluster.controller.image is before


async def test_an_error_is_the_answer_of_its_own_resource(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events"), NewTopic("twice")], 5)
        retained = ("retention.bytes", SET, "1000")
        twice = changing(retained, name="twice")
        assert await change(cluster, twice, changing(retained), twice) == [
            ErrorCode.invalid_request,
            ErrorCode.none,
            ErrorCode.invalid_request,
        ]
        assert (config(cluster).retention_bytes, config(cluster, "twice").retention_bytes) == (1000, -1)


async def test_a_setting_that_is_not_known_can_be_deleted(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events")], 5)
        assert await change(cluster, changing(("no.such.setting", DELETE, None))) == [ErrorCode.none]
        assert config(cluster) == TopicConfig()


async def test_a_setting_is_replaced_once(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events")], 5)
        configs = tuple(Replacement(name="retention.ms", value=value) for value in ("1000", "2000"))
        resource = Replaced(resource_type=i8(TOPIC), resource_name="events", configs=configs)
        request = AlterConfigsRequest(resources=(resource,), validate_only=False)
        (result,) = (await alter_configs(cluster.admins[0], CONTEXT, request)).responses
        assert (result.error_code, config(cluster)) == (ErrorCode.invalid_request, TopicConfig())


async def test_what_cannot_be_replaced_is_refused(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events")], 5)
        before = cluster.controller.image
        assert await replace(cluster, {"segment.bytes": None}) is ErrorCode.invalid_request
        assert await replace(cluster, {"cleanup.policy": "compact"}) is ErrorCode.invalid_config
        assert await replace(cluster, {}, "missing") is ErrorCode.unknown_topic_or_partition
        assert await replace(cluster, {}, "0", kind=BROKER) is ErrorCode.invalid_request
        assert cluster.controller.image is before
