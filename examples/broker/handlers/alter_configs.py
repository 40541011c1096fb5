"""AlterConfigs and IncrementalAlterConfigs: change the configuration of topics."""

from collections.abc import Callable, Iterable, Sequence
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
from examples.broker.handlers.refusals import (
    check_not_internal,
    error_code,
    error_message,
    repeated,
    repetition,
)
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
        values = {entry.name: _given(entry.name, entry.value) for entry in resource.configs}
        return parse_topic_config(values, admin.defaults.topic_config)

    return AlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=_altered(admin, ReplacedResource, request.resources, request.validate_only, replaced),
    )


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

    return IncrementalAlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=_altered(admin, ChangedResource, request.resources, request.validate_only, changed),
    )


def _altered(
    admin: ClusterAdmin,
    answer: type[AnswerT],
    resources: Sequence[ResourceT],
    validate_only: bool,
    alter: Callable[[ResourceT, TopicConfig], TopicConfig],
) -> tuple[AnswerT, ...]:
    """Alter each resource, or only validate; return the answer for each."""
    answers: list[AnswerT] = []
    twice = repeated((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        refused: ApiError | None = None
        try:
            if (resource.resource_type, resource.resource_name) in twice:
                raise repetition(resource.resource_name)
            _check(resource)
            topic = admin.controller.image.topic(resource.resource_name)
            config = alter(resource, topic.config)
            if not validate_only:
                admin.controller.alter_topic_config(topic.name, config)
        except ApiError as error:
            refused = error
        answers.append(
            answer(
                error_code=error_code(refused),
                error_message=error_message(refused),
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return tuple(answers)


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
    for name in repeated(names):
        raise repetition(name)


def _given(name: str, value: str | None) -> str:
    """Return the value of a setting. Raises ApiError INVALID_REQUEST when there is none."""
    if value is None:
        raise ApiError(ErrorCode.invalid_request, f"{name} cannot be null")
    return value


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
    value = _given(setting.name, setting.value)
    if operation is Operation.SET:
        return value
    if setting.name not in LISTS:
        raise ApiError(ErrorCode.invalid_config, f"{setting.name} is no list: {operation.name} is impossible")
    known, given = _elements(now), _elements(value)
    if operation is Operation.APPEND:
        return ",".join(dict.fromkeys([*known, *given]))
    return ",".join(element for element in known if element not in given)


def _elements(text: str) -> list[str]:
    return [element.strip() for element in text.split(",") if element.strip()]
