"""DescribeConfigs: requests and responses."""

from kio.schema.describe_configs.v4 import DescribeConfigsRequest
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResult
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import FIXED
from examples.broker.handlers.configs import describe_configs
from examples.broker.metadata import TopicConfig
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import CONTEXT, ControlledCluster

TOPIC, BROKER = 2, 4


async def describe(
    cluster: ControlledCluster, kind: int, name: str, keys: tuple[str, ...] | None = None
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=i8(kind), resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=(resource,))
    (result,) = (await describe_configs(cluster.admins[1], CONTEXT, request)).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def values(result: DescribeConfigsResult) -> dict[str, str | None]:
    assert result.error_code is ErrorCode.none
    return {entry.name: entry.value for entry in result.configs}


async def test_a_topics_own_settings_have_another_source_than_defaults(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        own = NewTopic("events", config=TopicConfig(min_insync_replicas=2))
        await cluster.admins[1].create([own], 5)
        result = await describe(cluster, TOPIC, "events")
        assert values(result)["min.insync.replicas"] == "2"
        assert {entry.name for entry in result.configs if entry.config_source == 1} == {"min.insync.replicas"}
        assert {entry.config_source for entry in result.configs} == {1, 5}


async def test_what_cannot_be_altered_is_read_only(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[1].create([NewTopic("events")], 5)
        topic, broker = await describe(cluster, TOPIC, "events"), await describe(cluster, BROKER, "1")
        assert {entry.name for entry in topic.configs if entry.read_only} == FIXED.keys()
        assert all(entry.read_only for entry in broker.configs)


async def test_only_the_requested_settings_are_returned(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[1].create([NewTopic("events")], 5)
        some = await describe(cluster, TOPIC, "events", ("segment.bytes", "no.such.setting"))
        assert values(some) == {"segment.bytes": "1048576"}
        every = await describe(cluster, TOPIC, "events", ())
        assert values(every) == values(await describe(cluster, TOPIC, "events"))


async def test_a_broker_describes_its_configuration(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        settings = values(await describe(cluster, BROKER, "1"))
        assert (settings["broker.id"], settings["broker.session.timeout.ms"]) == ("1", "9000")
        assert settings["auto.create.topics.enable"] == "true"
        assert values(await describe(cluster, BROKER, "")) == settings


async def test_a_resource_without_a_configuration_is_refused(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        for kind, name, error in [
            (TOPIC, "missing", ErrorCode.unknown_topic_or_partition),
            (BROKER, "0", ErrorCode.invalid_request),
            (BROKER, "one", ErrorCode.invalid_request),
            (8, "logger", ErrorCode.invalid_request),
        ]:
            result = await describe(cluster, kind, name)
            assert (result.error_code, result.configs) == (error, ())
            assert name in str(result.error_message) or kind == 8
