"""ElectLeaders: elect the preferred leaders again, or any live replicas."""

from kio.schema.elect_leaders.v2 import ElectLeadersRequest, ElectLeadersResponse
from kio.schema.elect_leaders.v2.response import PartitionResult, ReplicaElectionResult
from kio.schema.types import TopicName
from kio.static.primitive import i32

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.election import ElectionType
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.handlers.outcome import error_code, error_message
from examples.broker.metadata import PartitionState
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.topic_partition import TopicPartition, by_topic


async def elect_leaders(
    admin: ClusterAdmin, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Elect leaders, and answer when this broker knows them.

    The error is INVALID_REQUEST for an unknown election type.
    """
    try:
        election = ElectionType(request.election_type)
    except ValueError:
        return _response(ErrorCode.invalid_request, ())
    requested = request.topic_partitions
    topic_partitions = (
        None
        if requested is None
        else [TopicPartition(entry.topic, index) for entry in requested for index in entry.partitions]
    )
    results = await admin.elect_leaders(election, topic_partitions, request.timeout.total_seconds())
    return _response(
        ErrorCode.none,
        tuple(
            ReplicaElectionResult(
                topic=TopicName(topic),
                partition_result=tuple(_partition_result(index, result) for index, result in elected),
            )
            for topic, elected in by_topic(results.items()).items()
        ),
    )


def _partition_result(index: int, result: PartitionState | ApiError) -> PartitionResult:
    return PartitionResult(
        partition_id=i32(index),
        error_code=error_code(result),
        error_message=error_message(result),
    )


def _response(error: ErrorCode, results: tuple[ReplicaElectionResult, ...]) -> ElectLeadersResponse:
    return ElectLeadersResponse(throttle_time=NO_THROTTLE, error_code=error, replica_election_results=results)
