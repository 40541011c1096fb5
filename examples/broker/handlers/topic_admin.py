"""CreateTopics, DeleteTopics, CreatePartitions, ListPartitionReassignments and ElectLeaders."""

from collections.abc import Mapping
from functools import partial
from typing import TypeVar

from kio.schema.create_partitions.v3 import CreatePartitionsRequest, CreatePartitionsResponse
from kio.schema.create_partitions.v3.request import CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsTopicResult
from kio.schema.create_topics.v7 import CreateTopicsRequest, CreateTopicsResponse
from kio.schema.create_topics.v7.request import CreatableTopic
from kio.schema.create_topics.v7.response import CreatableTopicConfigs, CreatableTopicResult
from kio.schema.delete_topics.v5 import DeleteTopicsRequest, DeleteTopicsResponse
from kio.schema.delete_topics.v5.response import DeletableTopicResult
from kio.schema.elect_leaders.v2 import ElectLeadersRequest, ElectLeadersResponse
from kio.schema.elect_leaders.v2.response import PartitionResult, ReplicaElectionResult
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32

from examples.broker.controller.cluster_admin import ClusterAdmin, TopicResults
from examples.broker.controller.election import ElectionType
from examples.broker.controller.new_topic import BY_DEFAULT, NewPartitions, NewTopic
from examples.broker.controller.settings import FIXED, ClusterDefaults, parse_topic_config, topic_settings
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.handlers.configs import config_source
from examples.broker.handlers.refusals import accepted_topics, error_code, error_message, repeated, repetition
from examples.broker.metadata import PartitionState, TopicImage
from examples.broker.protocol.apis import NO_THROTTLE, RequestContext
from examples.broker.topic_partition import TopicPartition, by_topic

# The two APIs have classes of their own with the same fields.
AnswerT = TypeVar("AnswerT", DeletableTopicResult, CreatePartitionsTopicResult)


async def create_topics(
    admin: ClusterAdmin, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Create the topics, or only validate them; answer when this broker knows them."""
    accepted, results = accepted_topics(request.topics, partial(_new_topic, admin.defaults))
    timeout = request.timeout.total_seconds()
    results |= await admin.create(accepted, timeout, validate_only=request.validate_only)
    return CreateTopicsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(_created(name, result, admin.defaults) for name, result in results.items()),
    )


async def delete_topics(
    admin: ClusterAdmin, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Delete the topics, and answer when they are not in this broker's metadata any more."""
    twice = repeated(request.topic_names)
    once = [name for name in request.topic_names if name not in twice]
    results = await admin.delete_topics(once, request.timeout.total_seconds())
    results |= {name: repetition(name) for name in twice}
    return DeleteTopicsResponse(
        throttle_time=NO_THROTTLE,
        responses=_answers(DeletableTopicResult, results),
    )


async def create_partitions(
    admin: ClusterAdmin, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Add partitions to topics, or only validate; answer when this broker knows them."""
    accepted, results = accepted_topics(request.topics, _new_partitions)
    timeout = request.timeout.total_seconds()
    results |= await admin.create(accepted, timeout, validate_only=request.validate_only)
    return CreatePartitionsResponse(
        throttle_time=NO_THROTTLE,
        results=_answers(CreatePartitionsTopicResult, results),
    )


async def list_partition_reassignments(
    admin: ClusterAdmin, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return no reassignment: the replicas of a partition stay on their brokers."""
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, error_message=None, topics=()
    )


async def elect_leaders(
    admin: ClusterAdmin, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Elect leaders, and answer when this broker knows them.

    The error is INVALID_REQUEST for an unknown election type.
    """
    requested, error = request.topic_partitions, ErrorCode.none
    results: Mapping[TopicPartition, PartitionState | ApiError] = {}
    try:
        election = ElectionType(request.election_type)
    except ValueError:
        error = ErrorCode.invalid_request
    else:
        topic_partitions = (
            None
            if requested is None
            else [TopicPartition(entry.topic, index) for entry in requested for index in entry.partitions]
        )
        results = await admin.elect_leaders(election, topic_partitions, request.timeout.total_seconds())
    return ElectLeadersResponse(
        throttle_time=NO_THROTTLE,
        error_code=error,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=TopicName(topic),
                partition_result=tuple(
                    PartitionResult(
                        partition_id=i32(index),
                        error_code=error_code(result),
                        error_message=error_message(result),
                    )
                    for index, result in elected
                ),
            )
            for topic, elected in by_topic(results.items()).items()
        ),
    )


def _answers(answer: type[AnswerT], results: TopicResults) -> tuple[AnswerT, ...]:
    return tuple(
        answer(name=TopicName(name), error_code=error_code(result), error_message=error_message(result))
        for name, result in results.items()
    )


def _new_topic(defaults: ClusterDefaults, topic: CreatableTopic) -> NewTopic:
    """Return the topic that the client wants.

    Raises ApiError INVALID_REQUEST, INVALID_REPLICA_ASSIGNMENT or INVALID_CONFIG.
    """
    assigned = {entry.partition_index: tuple(entry.broker_ids) for entry in topic.assignments}
    if assigned and not topic.num_partitions == topic.replication_factor == BY_DEFAULT:
        raise ApiError(
            ErrorCode.invalid_request,
            f"{topic.name!r} has an assignment, so the numbers of partitions and replicas must be -1",
        )
    if len(assigned) < len(topic.assignments) or sorted(assigned) != list(range(len(assigned))):
        raise ApiError(
            ErrorCode.invalid_replica_assignment,
            f"the partitions that {topic.name!r} assigns are not 0, 1, 2 and so on, each once",
        )
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple(assigned[index] for index in sorted(assigned)),
        parse_topic_config({entry.name: entry.value for entry in topic.configs}, defaults.topic_config),
    )


def _created(name: str, result: TopicImage | ApiError, defaults: ClusterDefaults) -> CreatableTopicResult:
    if isinstance(result, ApiError):
        return CreatableTopicResult(
            name=TopicName(name),
            topic_id=None,
            error_code=result.code,
            error_message=str(result),
            configs=(),
        )
    default_settings = topic_settings(defaults.topic_config)
    return CreatableTopicResult(
        name=TopicName(name),
        topic_id=result.topic_id,
        error_code=ErrorCode.none,
        error_message=None,
        num_partitions=i32(len(result.partitions)),
        replication_factor=i16(len(result.partitions[0].replicas)),
        configs=tuple(
            CreatableTopicConfigs(
                name=setting,
                value=value,
                read_only=setting in FIXED,
                config_source=i8(config_source(value, default_settings[setting])),
                is_sensitive=False,
            )
            for setting, value in topic_settings(result.config).items()
        ),
    )


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    assignment = None
    if topic.assignments is not None:
        assignment = tuple(tuple(entry.broker_ids) for entry in topic.assignments)
    return NewPartitions(topic.name, topic.count, assignment)
