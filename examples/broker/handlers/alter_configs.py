"""AlterConfigs and IncrementalAlterConfigs: change the configuration of topics."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, Protocol, TypeVar

from kio.schema.alter_configs.v2 import AlterConfigsRequest, AlterConfigsResponse
from kio.schema.alter_configs.v2.request import AlterConfigsResource as ReplacingResource
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse as ReplacedResource
from kio.schema.incremental_alter_configs.v1 import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig
from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource as ChangingResource
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse as ChangedResource
from kio.static.primitive import i8

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.new_topic import check_name
from examples.broker.controller.settings import parse_topic_config, topic_settings
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.handlers.configs import ResourceType
from examples.broker.handlers.internal_topics import check_not_internal
from examples.broker.handlers.outcome import error_code, error_message
from examples.broker.metadata import TopicConfig
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext

LISTS: Final = {"cleanup.policy"}
"""The settings that are lists, with commas between their elements."""


class Operation(IntEnum):
    """What happens to a setting (org.apache.kafka.clients.admin.AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class _Resource(Protocol):
    @property
    def resource_type(self) -> i8: ...
    @property
    def resource_name(self) -> str: ...


ResourceT = TypeVar("ResourceT", bound=_Resource)
# The two APIs have classes of their own with the same fields.
AnswerT = TypeVar("AnswerT", ReplacedResource, ChangedResource)


async def alter_configs(
    admin: ClusterAdmin, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Replace configurations. A setting that is not named has its default again.

    The answer does not wait until the brokers know of the change.
    """

    def replaced(resource: ReplacingResource, known: TopicConfig) -> TopicConfig:
        _check_once(entry.name for entry in resource.configs)
        for entry in resource.configs:
            if entry.value is None:
                raise ApiError(ErrorCode.invalid_request, f"{entry.name} cannot be null")
        values = {entry.name: entry.value for entry in resource.configs}
        return parse_topic_config(values, admin.defaults.topic_config)

    altered = _altered(admin, request.resources, request.validate_only, replaced)
    return AlterConfigsResponse(throttle_time=NO_THROTTLE, responses=_answers(ReplacedResource, altered))


async def incremental_alter_configs(
    admin: ClusterAdmin, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change single settings, each once, and leave the others as they are (KIP-339)."""

    def changed(resource: ChangingResource, known: TopicConfig) -> TopicConfig:
        _check_once(entry.name for entry in resource.configs)
        now, defaults = topic_settings(known), topic_settings(admin.defaults.topic_config)
        values = {
            entry.name: _changed(entry, now.get(entry.name, ""), defaults.get(entry.name))
            for entry in resource.configs
            # What is not known has been deleted already.
            if entry.config_operation != int(Operation.DELETE) or entry.name in now
        }
        return parse_topic_config(values, known)

    altered = _altered(admin, request.resources, request.validate_only, changed)
    return IncrementalAlterConfigsResponse(
        throttle_time=NO_THROTTLE, responses=_answers(ChangedResource, altered)
    )


def _altered(
    admin: ClusterAdmin,
    resources: Sequence[ResourceT],
    validate_only: bool,
    alter: Callable[[ResourceT, TopicConfig], TopicConfig],
) -> Iterator[tuple[ResourceT, ApiError | None]]:
    """Alter each resource, or only validate; return it with its error."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise ApiError(
                    ErrorCode.invalid_request, f"{resource.resource_name!r} is in the request more than once"
                )
            _check(resource)
            topic = admin.controller.topic(resource.resource_name)
            config = alter(resource, topic.config)
            if not validate_only:
                admin.controller.alter_topic_config(topic.name, config)
        except ApiError as error:
            yield resource, error
        else:
            yield resource, None


def _answers(
    answer: type[AnswerT], altered: Iterable[tuple[_Resource, ApiError | None]]
) -> tuple[AnswerT, ...]:
    return tuple(
        answer(
            error_code=error_code(error),
            error_message=error_message(error),
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, error in altered
    )


def _check(resource: _Resource) -> None:
    """Raise ApiError unless the resource is a topic whose configuration can be altered."""
    # Annotated as int, since mypy knows that kio's phantom type never equals a member of an enum.
    resource_type: int = resource.resource_type
    if resource_type == ResourceType.BROKER:
        raise ApiError(
            ErrorCode.invalid_request,
            "the configuration of a broker is read-only; start the brokers with other options",
        )
    if resource_type != ResourceType.TOPIC:
        raise ApiError(
            ErrorCode.invalid_request, f"topics (2) can be altered, resources of type {resource_type} cannot"
        )
    check_name(resource.resource_name)
    check_not_internal(resource.resource_name)


def _check_once(names: Iterable[str]) -> None:
    """Raise ApiError INVALID_REQUEST unless each setting is named once."""
    for name, times in Counter(names).items():
        if times > 1:
            raise ApiError(ErrorCode.invalid_request, f"{name!r} is altered more than once")


def _changed(setting: AlterableConfig, now: str, default: str | None) -> str | None:
    """Return the text that the setting has after its operation.

    Raises ApiError INVALID_REQUEST for an unknown operation or no value, and INVALID_CONFIG for a list's
    operation on another setting.
    """
    try:
        operation = Operation(setting.config_operation)
    except ValueError:
        raise ApiError(
            ErrorCode.invalid_request, f"{setting.config_operation} is no operation on {setting.name}"
        ) from None
    if operation is Operation.DELETE:
        return default
    if setting.value is None:
        raise ApiError(ErrorCode.invalid_request, f"{setting.name} cannot be null")
    if operation is Operation.SET:
        return setting.value
    if setting.name not in LISTS:
        raise ApiError(ErrorCode.invalid_config, f"{setting.name} is no list: {operation.name} is impossible")
    known, given = _elements(now), _elements(setting.value)
    if operation is Operation.APPEND:
        return ",".join(dict.fromkeys([*known, *given]))
    return ",".join(element for element in known if element not in given)


def _elements(text: str) -> list[str]:
    return [element.strip() for element in text.split(",") if element.strip()]
