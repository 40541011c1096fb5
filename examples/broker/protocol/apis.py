"""What is served: each API, its versions, and the classes of the newest, which are all a handler sees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.create_topics.v7 import CreateTopicsRequest, CreateTopicsResponse
from kio.schema.delete_groups.v2 import DeleteGroupsRequest, DeleteGroupsResponse
from kio.schema.delete_records.v2 import DeleteRecordsRequest, DeleteRecordsResponse
from kio.schema.delete_topics.v5 import DeleteTopicsRequest, DeleteTopicsResponse
from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_groups.v5 import DescribeGroupsRequest, DescribeGroupsResponse
from kio.schema.elect_leaders.v2 import ElectLeadersRequest, ElectLeadersResponse
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.find_coordinator.v6 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.heartbeat.v4 import HeartbeatRequest, HeartbeatResponse
from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.join_group.v9 import JoinGroupRequest, JoinGroupResponse
from kio.schema.leave_group.v5 import LeaveGroupRequest, LeaveGroupResponse
from kio.schema.list_groups.v4 import ListGroupsRequest, ListGroupsResponse
from kio.schema.list_offsets.v9 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.metadata.v13 import MetadataRequest, MetadataResponse
from kio.schema.offset_commit.v9 import OffsetCommitRequest, OffsetCommitResponse
from kio.schema.offset_fetch.v9 import OffsetFetchRequest, OffsetFetchResponse
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kio.schema.produce.v12 import ProduceRequest, ProduceResponse
from kio.schema.sync_group.v5 import SyncGroupRequest, SyncGroupResponse
from kio.static.protocol import Payload

RequestT = TypeVar("RequestT", bound=Payload)
ResponseT = TypeVar("ResponseT", bound=Payload)


@dataclass(frozen=True, slots=True, eq=False)
class Api(Generic[RequestT, ResponseT]):
    """One kind of request and its response, at the newest version served. There is one object for each."""

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
        """As Kafka calls it: "ListOffsets"."""
        return self.request.__name__.removesuffix("Request")

    @property
    def max_version(self) -> int:
        return self.request.__version__


# 13 names topics by their id (KIP-516).
PRODUCE: Final = Api(ProduceRequest, ProduceResponse, min_version=3)
# 13 names topics by their id (KIP-516).
FETCH: Final = Api(FetchRequest, FetchResponse, min_version=4)
# 10 waits for offsets in remote storage (KIP-1075).
LIST_OFFSETS: Final = Api(ListOffsetsRequest, ListOffsetsResponse, min_version=1)
METADATA: Final = Api(MetadataRequest, MetadataResponse, min_version=0)
# 10 names topics by their id (KIP-848).
OFFSET_COMMIT: Final = Api(OffsetCommitRequest, OffsetCommitResponse, min_version=2)
# 1 cannot say that a group failed, but only that a partition did; 10 names topics by their id.
OFFSET_FETCH: Final = Api(OffsetFetchRequest, OffsetFetchResponse, min_version=2)
FIND_COORDINATOR: Final = Api(FindCoordinatorRequest, FindCoordinatorResponse, min_version=0)
JOIN_GROUP: Final = Api(JoinGroupRequest, JoinGroupResponse, min_version=0)
HEARTBEAT: Final = Api(HeartbeatRequest, HeartbeatResponse, min_version=0)
LEAVE_GROUP: Final = Api(LeaveGroupRequest, LeaveGroupResponse, min_version=0)
SYNC_GROUP: Final = Api(SyncGroupRequest, SyncGroupResponse, min_version=0)
# 6 answers for a group that is not there with an error (KIP-1043).
DESCRIBE_GROUPS: Final = Api(DescribeGroupsRequest, DescribeGroupsResponse, min_version=0)
# 5 tells consumer groups from classic ones (KIP-848).
LIST_GROUPS: Final = Api(ListGroupsRequest, ListGroupsResponse, min_version=0)
API_VERSIONS: Final = Api(ApiVersionsRequest, ApiVersionsResponse, min_version=0)
CREATE_TOPICS: Final = Api(CreateTopicsRequest, CreateTopicsResponse, min_version=2)
# 6 names topics by their id (KIP-516).
DELETE_TOPICS: Final = Api(DeleteTopicsRequest, DeleteTopicsResponse, min_version=1)
DELETE_RECORDS: Final = Api(DeleteRecordsRequest, DeleteRecordsResponse, min_version=0)
# 5 and 6 are about transactions (KIP-890, KIP-939).
INIT_PRODUCER_ID: Final = Api(InitProducerIdRequest, InitProducerIdResponse, min_version=0)
OFFSET_FOR_LEADER_EPOCH: Final = Api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, min_version=2)
DESCRIBE_CONFIGS: Final = Api(DescribeConfigsRequest, DescribeConfigsResponse, min_version=1)
DELETE_GROUPS: Final = Api(DeleteGroupsRequest, DeleteGroupsResponse, min_version=0)
ELECT_LEADERS: Final = Api(ElectLeadersRequest, ElectLeadersResponse, min_version=0)
# 2 lists fenced brokers, too (KIP-1073).
DESCRIBE_CLUSTER: Final = Api(DescribeClusterRequest, DescribeClusterResponse, min_version=0)

APIS: Final[Mapping[int, Api[Any, Any]]] = {
    api.key: api
    for api in (
        PRODUCE,
        FETCH,
        LIST_OFFSETS,
        METADATA,
        OFFSET_COMMIT,
        OFFSET_FETCH,
        FIND_COORDINATOR,
        JOIN_GROUP,
        HEARTBEAT,
        LEAVE_GROUP,
        SYNC_GROUP,
        DESCRIBE_GROUPS,
        LIST_GROUPS,
        API_VERSIONS,
        CREATE_TOPICS,
        DELETE_TOPICS,
        DELETE_RECORDS,
        INIT_PRODUCER_ID,
        OFFSET_FOR_LEADER_EPOCH,
        DESCRIBE_CONFIGS,
        DELETE_GROUPS,
        ELECT_LEADERS,
        DESCRIBE_CLUSTER,
    )
}
