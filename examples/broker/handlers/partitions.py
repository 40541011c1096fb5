"""CreatePartitions and ListPartitionReassignments: the partitions of topics that exist."""

from kio.schema.create_partitions.v3 import CreatePartitionsRequest, CreatePartitionsResponse
from kio.schema.create_partitions.v3.request import CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsTopicResult
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.types import TopicName

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.new_partitions import NewPartitions
from examples.broker.errors import ErrorCode
from examples.broker.handlers.accepted_topics import accepted_topics
from examples.broker.handlers.outcome import error_code, error_message
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext


async def create_partitions(
    admin: ClusterAdmin, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Add partitions to topics, or only validate; answer when this broker knows them."""
    accepted, results = accepted_topics(request.topics, _new_partitions)
    if request.validate_only:
        results |= admin.plan_partitions(accepted)
    else:
        results |= await admin.create_partitions(accepted, request.timeout.total_seconds())
    return CreatePartitionsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            CreatePartitionsTopicResult(
                name=TopicName(name),
                error_code=error_code(result),
                error_message=error_message(result),
            )
            for name, result in results.items()
        ),
    )


async def list_partition_reassignments(
    admin: ClusterAdmin, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return no reassignment: the replicas of a partition stay on their brokers."""
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, error_message=None, topics=()
    )


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    assignment = None
    if topic.assignments is not None:
        assignment = tuple(tuple(entry.broker_ids) for entry in topic.assignments)
    return NewPartitions(topic.name, topic.count, assignment)
