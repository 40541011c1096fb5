"""The APIs that this broker serves, each with its versions.

Handlers see the classes of the newest version alone. To serve one more API, declare its request here in two
lines, an import and a ``_serve``; write its handler in ``handlers/``; and add its route in
``node/routes.py``. An old version with another structure than the newest needs a bridge in
``protocol/versions.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from kio.index import load_response_from_request
from kio.schema.alter_configs.v2 import AlterConfigsRequest
from kio.schema.api_versions.v4 import ApiVersionsRequest
from kio.schema.create_partitions.v3 import CreatePartitionsRequest
from kio.schema.create_topics.v7 import CreateTopicsRequest
from kio.schema.delete_groups.v2 import DeleteGroupsRequest
from kio.schema.delete_records.v2 import DeleteRecordsRequest
from kio.schema.delete_topics.v5 import DeleteTopicsRequest
from kio.schema.describe_cluster.v1 import DescribeClusterRequest
from kio.schema.describe_configs.v4 import DescribeConfigsRequest
from kio.schema.describe_groups.v5 import DescribeGroupsRequest
from kio.schema.describe_log_dirs.v4 import DescribeLogDirsRequest
from kio.schema.describe_producers.v0 import DescribeProducersRequest
from kio.schema.describe_topic_partitions.v0 import DescribeTopicPartitionsRequest
from kio.schema.elect_leaders.v2 import ElectLeadersRequest
from kio.schema.fetch.v12 import FetchRequest
from kio.schema.find_coordinator.v6 import FindCoordinatorRequest
from kio.schema.heartbeat.v4 import HeartbeatRequest
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest
from kio.schema.init_producer_id.v4 import InitProducerIdRequest
from kio.schema.join_group.v9 import JoinGroupRequest
from kio.schema.leave_group.v5 import LeaveGroupRequest
from kio.schema.list_groups.v4 import ListGroupsRequest
from kio.schema.list_offsets.v9 import ListOffsetsRequest
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsRequest
from kio.schema.metadata.v13 import MetadataRequest
from kio.schema.offset_commit.v9 import OffsetCommitRequest
from kio.schema.offset_delete.v0 import OffsetDeleteRequest
from kio.schema.offset_fetch.v9 import OffsetFetchRequest
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest
from kio.schema.produce.v12 import ProduceRequest
from kio.schema.sync_group.v5 import SyncGroupRequest
from kio.static.primitive import i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

# The throttle time of every response, since there are no quotas.
NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """One kind of request and its response, in the newest version that is served.

    There is one object for each API, which is compared by identity.
    """

    request: type[RequestPayload]
    min_version: int

    def __repr__(self) -> str:
        return f"<Api {self.name} {self.min_version}-{self.max_version}>"

    @property
    def response(self) -> type[ResponsePayload]:
        return load_response_from_request(self.request)

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


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The header of a request: its API and version, and its client."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    client_host: str

    def __str__(self) -> str:
        return f"{self.api.name} v{self.version} from {self.client_id!r} at {self.client_host}"


_served: dict[int, Api] = {}
APIS: Final[Mapping[int, Api]] = _served
"""Every API declared below, by its key."""


def _serve(request: type[RequestPayload], *, min_version: int) -> Api:
    api = _served[request.__api_key__] = Api(request, min_version)
    return api


# The classes of an API have its newest version. A comment says why that is not Kafka's newest.

# Version 13 of Produce and of Fetch identifies topics by their id (KIP-516).
PRODUCE: Final = _serve(ProduceRequest, min_version=3)
FETCH: Final = _serve(FetchRequest, min_version=4)
# Version 10 waits for offsets in remote storage (KIP-1075).
LIST_OFFSETS: Final = _serve(ListOffsetsRequest, min_version=1)
METADATA: Final = _serve(MetadataRequest, min_version=0)
# Version 10 identifies topics by their id (KIP-848).
OFFSET_COMMIT: Final = _serve(OffsetCommitRequest, min_version=2)
# Version 1 has no error code for the group. Version 10 identifies topics by their id.
OFFSET_FETCH: Final = _serve(OffsetFetchRequest, min_version=2)
FIND_COORDINATOR: Final = _serve(FindCoordinatorRequest, min_version=0)
JOIN_GROUP: Final = _serve(JoinGroupRequest, min_version=0)
HEARTBEAT: Final = _serve(HeartbeatRequest, min_version=0)
LEAVE_GROUP: Final = _serve(LeaveGroupRequest, min_version=0)
SYNC_GROUP: Final = _serve(SyncGroupRequest, min_version=0)
# Version 6 answers with an error for a group that does not exist (KIP-1043).
DESCRIBE_GROUPS: Final = _serve(DescribeGroupsRequest, min_version=0)
# Version 5 distinguishes consumer groups from classic groups (KIP-848).
LIST_GROUPS: Final = _serve(ListGroupsRequest, min_version=0)
API_VERSIONS: Final = _serve(ApiVersionsRequest, min_version=0)
CREATE_TOPICS: Final = _serve(CreateTopicsRequest, min_version=2)
# Version 6 identifies topics by their id (KIP-516).
DELETE_TOPICS: Final = _serve(DeleteTopicsRequest, min_version=1)
DELETE_RECORDS: Final = _serve(DeleteRecordsRequest, min_version=0)
# Versions 5 and 6 are about transactions (KIP-890, KIP-939).
INIT_PRODUCER_ID: Final = _serve(InitProducerIdRequest, min_version=0)
OFFSET_FOR_LEADER_EPOCH: Final = _serve(OffsetForLeaderEpochRequest, min_version=2)
DESCRIBE_CONFIGS: Final = _serve(DescribeConfigsRequest, min_version=1)
DELETE_GROUPS: Final = _serve(DeleteGroupsRequest, min_version=0)
ELECT_LEADERS: Final = _serve(ElectLeadersRequest, min_version=0)
# Version 2 lists fenced brokers, too (KIP-1073).
DESCRIBE_CLUSTER: Final = _serve(DescribeClusterRequest, min_version=0)
CREATE_PARTITIONS: Final = _serve(CreatePartitionsRequest, min_version=0)
ALTER_CONFIGS: Final = _serve(AlterConfigsRequest, min_version=0)
INCREMENTAL_ALTER_CONFIGS: Final = _serve(IncrementalAlterConfigsRequest, min_version=0)
LIST_PARTITION_REASSIGNMENTS: Final = _serve(ListPartitionReassignmentsRequest, min_version=0)
OFFSET_DELETE: Final = _serve(OffsetDeleteRequest, min_version=0)
# Version 5 knows cordoned directories, to which no replica is added (KIP-1066).
DESCRIBE_LOG_DIRS: Final = _serve(DescribeLogDirsRequest, min_version=1)
DESCRIBE_TOPIC_PARTITIONS: Final = _serve(DescribeTopicPartitionsRequest, min_version=0)
DESCRIBE_PRODUCERS: Final = _serve(DescribeProducersRequest, min_version=0)
