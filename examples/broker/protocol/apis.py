"""The APIs that this broker serves, each with its versions.

Handlers see the classes of the newest version alone. To serve one more API, declare it here in two lines, an
import and a ``_serve``; write its handler in ``handlers/``; and add its route in ``node/routes.py``. An old
version with another structure than the newest needs a bridge in ``protocol/versions.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from kio.schema.alter_configs.v2 import AlterConfigsRequest, AlterConfigsResponse
from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.create_partitions.v3 import CreatePartitionsRequest, CreatePartitionsResponse
from kio.schema.create_topics.v7 import CreateTopicsRequest, CreateTopicsResponse
from kio.schema.delete_groups.v2 import DeleteGroupsRequest, DeleteGroupsResponse
from kio.schema.delete_records.v2 import DeleteRecordsRequest, DeleteRecordsResponse
from kio.schema.delete_topics.v5 import DeleteTopicsRequest, DeleteTopicsResponse
from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_groups.v5 import DescribeGroupsRequest, DescribeGroupsResponse
from kio.schema.describe_log_dirs.v4 import DescribeLogDirsRequest, DescribeLogDirsResponse
from kio.schema.describe_producers.v0 import DescribeProducersRequest, DescribeProducersResponse
from kio.schema.describe_topic_partitions.v0 import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kio.schema.elect_leaders.v2 import ElectLeadersRequest, ElectLeadersResponse
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.find_coordinator.v6 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.heartbeat.v4 import HeartbeatRequest, HeartbeatResponse
from kio.schema.incremental_alter_configs.v1 import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.join_group.v9 import JoinGroupRequest, JoinGroupResponse
from kio.schema.leave_group.v5 import LeaveGroupRequest, LeaveGroupResponse
from kio.schema.list_groups.v4 import ListGroupsRequest, ListGroupsResponse
from kio.schema.list_offsets.v9 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.metadata.v13 import MetadataRequest, MetadataResponse
from kio.schema.offset_commit.v9 import OffsetCommitRequest, OffsetCommitResponse
from kio.schema.offset_delete.v0 import OffsetDeleteRequest, OffsetDeleteResponse
from kio.schema.offset_fetch.v9 import OffsetFetchRequest, OffsetFetchResponse
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kio.schema.produce.v12 import ProduceRequest, ProduceResponse
from kio.schema.sync_group.v5 import SyncGroupRequest, SyncGroupResponse
from kio.static.primitive import i16, i32Timedelta
from kio.static.protocol import Entity

# The throttle time of every response, since there are no quotas.
NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))


class Payload(Entity, Protocol):
    """A request or a response. Pyright does not take kio's classes for what kio's own protocol asks for."""

    __api_key__: ClassVar[i16]


RequestT = TypeVar("RequestT", bound=Payload)
ResponseT = TypeVar("ResponseT", bound=Payload)


@dataclass(frozen=True, slots=True, eq=False)
class Api(Generic[RequestT, ResponseT]):
    """One kind of request and its response, in the newest version that is served.

    There is one object for each API, which is compared by identity.
    """

    request: type[RequestT]
    response: type[ResponseT]
    min_version: int

    def __repr__(self) -> str:
        return f"<Api {self.name} {self.min_version}-{self.max_version}>"

    @property
    def key(self) -> int:
        return self.request.__api_key__

    @property
    def name(self) -> str:
        """Kafka's name of the API, such as "ListOffsets"."""
        return self.request.__name__.removesuffix("Request")

    @property
    def max_version(self) -> int:
        return self.request.__version__


_served: dict[int, Api[Any, Any]] = {}
APIS: Final[Mapping[int, Api[Any, Any]]] = _served
"""Every API declared below, by its key."""


def _serve(
    request: type[RequestT], response: type[ResponseT], *, min_version: int
) -> Api[RequestT, ResponseT]:
    api = _served[request.__api_key__] = Api(request, response, min_version)
    return api


# The newest version of an API is that of its classes. A comment says why it is not Kafka's newest.

# Version 13 identifies topics by their id (KIP-516).
PRODUCE: Final = _serve(ProduceRequest, ProduceResponse, min_version=3)
# Version 13 identifies topics by their id (KIP-516).
FETCH: Final = _serve(FetchRequest, FetchResponse, min_version=4)
# Version 10 waits for offsets in remote storage (KIP-1075).
LIST_OFFSETS: Final = _serve(ListOffsetsRequest, ListOffsetsResponse, min_version=1)
METADATA: Final = _serve(MetadataRequest, MetadataResponse, min_version=0)
# Version 10 identifies topics by their id (KIP-848).
OFFSET_COMMIT: Final = _serve(OffsetCommitRequest, OffsetCommitResponse, min_version=2)
# Version 1 has an error code for a partition and none for the group. Version 10 identifies topics by their
# id.
OFFSET_FETCH: Final = _serve(OffsetFetchRequest, OffsetFetchResponse, min_version=2)
FIND_COORDINATOR: Final = _serve(FindCoordinatorRequest, FindCoordinatorResponse, min_version=0)
JOIN_GROUP: Final = _serve(JoinGroupRequest, JoinGroupResponse, min_version=0)
HEARTBEAT: Final = _serve(HeartbeatRequest, HeartbeatResponse, min_version=0)
LEAVE_GROUP: Final = _serve(LeaveGroupRequest, LeaveGroupResponse, min_version=0)
SYNC_GROUP: Final = _serve(SyncGroupRequest, SyncGroupResponse, min_version=0)
# Version 6 answers with an error for a group that does not exist (KIP-1043).
DESCRIBE_GROUPS: Final = _serve(DescribeGroupsRequest, DescribeGroupsResponse, min_version=0)
# Version 5 distinguishes consumer groups from classic groups (KIP-848).
LIST_GROUPS: Final = _serve(ListGroupsRequest, ListGroupsResponse, min_version=0)
API_VERSIONS: Final = _serve(ApiVersionsRequest, ApiVersionsResponse, min_version=0)
CREATE_TOPICS: Final = _serve(CreateTopicsRequest, CreateTopicsResponse, min_version=2)
# Version 6 identifies topics by their id (KIP-516).
DELETE_TOPICS: Final = _serve(DeleteTopicsRequest, DeleteTopicsResponse, min_version=1)
DELETE_RECORDS: Final = _serve(DeleteRecordsRequest, DeleteRecordsResponse, min_version=0)
# Versions 5 and 6 are about transactions (KIP-890, KIP-939).
INIT_PRODUCER_ID: Final = _serve(InitProducerIdRequest, InitProducerIdResponse, min_version=0)
OFFSET_FOR_LEADER_EPOCH: Final = _serve(
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, min_version=2
)
DESCRIBE_CONFIGS: Final = _serve(DescribeConfigsRequest, DescribeConfigsResponse, min_version=1)
DELETE_GROUPS: Final = _serve(DeleteGroupsRequest, DeleteGroupsResponse, min_version=0)
ELECT_LEADERS: Final = _serve(ElectLeadersRequest, ElectLeadersResponse, min_version=0)
# Version 2 lists fenced brokers, too (KIP-1073).
DESCRIBE_CLUSTER: Final = _serve(DescribeClusterRequest, DescribeClusterResponse, min_version=0)
CREATE_PARTITIONS: Final = _serve(CreatePartitionsRequest, CreatePartitionsResponse, min_version=0)
ALTER_CONFIGS: Final = _serve(AlterConfigsRequest, AlterConfigsResponse, min_version=0)
INCREMENTAL_ALTER_CONFIGS: Final = _serve(
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, min_version=0
)
LIST_PARTITION_REASSIGNMENTS: Final = _serve(
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse, min_version=0
)
OFFSET_DELETE: Final = _serve(OffsetDeleteRequest, OffsetDeleteResponse, min_version=0)
# Version 5 knows cordoned directories, to which no replica is added (KIP-1066).
DESCRIBE_LOG_DIRS: Final = _serve(DescribeLogDirsRequest, DescribeLogDirsResponse, min_version=1)
DESCRIBE_TOPIC_PARTITIONS: Final = _serve(
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, min_version=0
)
DESCRIBE_PRODUCERS: Final = _serve(DescribeProducersRequest, DescribeProducersResponse, min_version=0)
