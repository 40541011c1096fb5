"""DescribeConfigs: the configuration of topics and of this broker."""

from collections.abc import Mapping
from enum import IntEnum

from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResult
from kio.static.primitive import i8

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.new_topic import check_name
from examples.broker.controller.settings import FIXED, ClusterDefaults, topic_settings
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.handlers.refusals import error_code, error_message
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext


class ResourceType(IntEnum):
    """The resources with a configuration (org.apache.kafka.common.config.ConfigResource)."""

    TOPIC = 2
    BROKER = 4


class ConfigSource(IntEnum):
    """The origin of a setting (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = 1
    BROKER = 4
    DEFAULT = 5


async def describe_configs(
    admin: ClusterAdmin, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Return the requested configurations. An error is the answer of its own resource alone."""
    return DescribeConfigsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(_described(admin, resource) for resource in request.resources),
    )


def config_source(value: str, default: str) -> ConfigSource:
    """Return the origin of a topic's setting. A setting that equals the default counts as the default."""
    return ConfigSource.DEFAULT if value == default else ConfigSource.TOPIC


def _described(admin: ClusterAdmin, resource: DescribeConfigsResource) -> DescribeConfigsResult:
    settings: Mapping[str, tuple[str, ConfigSource]] = {}
    refused: ApiError | None = None
    try:
        settings = _settings(admin, resource)
    except ApiError as error:
        refused = error
    wanted = resource.configuration_keys or settings.keys()
    return DescribeConfigsResult(
        error_code=error_code(refused),
        error_message=error_message(refused) or "",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=source == ConfigSource.BROKER or name in FIXED,
                config_source=i8(source),
                is_sensitive=False,
                synonyms=(),
                documentation=None,
            )
            for name, (value, source) in settings.items()
            if name in wanted
        ),
    )


def _settings(
    admin: ClusterAdmin, resource: DescribeConfigsResource
) -> Mapping[str, tuple[str, ConfigSource]]:
    """Return the settings of a resource with their origin.

    Raises ApiError UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, or INVALID_REQUEST for another broker
    or resource type.
    """
    # Annotated as int, since mypy knows that kio's phantom type never equals a member of an enum.
    resource_type: int = resource.resource_type
    if resource_type == ResourceType.TOPIC:
        check_name(resource.resource_name)
        topic = admin.cache.image.topic(resource.resource_name)
        defaults = topic_settings(admin.defaults.topic_config)
        settings = topic_settings(topic.config)
        return {name: (value, config_source(value, defaults[name])) for name, value in settings.items()}
    broker_id = admin.cache.broker_id
    if resource_type != ResourceType.BROKER:
        fault = f"topics (2) and brokers (4) have a configuration, type {resource_type} has none"
    elif resource.resource_name not in ("", str(broker_id)):
        fault = f"broker {broker_id} does not know the configuration of broker {resource.resource_name!r}"
    else:
        settings = _broker_settings(broker_id, admin.defaults)
        return {name: (value, ConfigSource.BROKER) for name, value in settings.items()}
    raise ApiError(ErrorCode.invalid_request, fault)


def _broker_settings(broker_id: int, defaults: ClusterDefaults) -> dict[str, str]:
    return {
        "auto.create.topics.enable": str(defaults.auto_create_topics_enable).lower(),
        "broker.id": str(broker_id),
        "broker.session.timeout.ms": str(round(defaults.broker_session_timeout * 1000)),
        "default.replication.factor": str(defaults.default_replication_factor),
        "log.segment.bytes": str(defaults.topic_config.segment_bytes),
        "message.max.bytes": str(defaults.topic_config.max_message_bytes),
        "min.insync.replicas": str(defaults.topic_config.min_insync_replicas),
        "num.partitions": str(defaults.num_partitions),
        "offsets.topic.num.partitions": str(defaults.offsets_topic_num_partitions),
        "offsets.topic.replication.factor": str(defaults.offsets_topic_replication_factor),
    }
