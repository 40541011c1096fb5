"""The handler of each API, and the part of the broker that it works on."""

from collections.abc import Mapping
from functools import partial

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.handlers.alter_configs import alter_configs, incremental_alter_configs
from examples.broker.handlers.cluster_metadata import describe_cluster, describe_topic_partitions, metadata
from examples.broker.handlers.configs import describe_configs
from examples.broker.handlers.group_admin import delete_groups, describe_groups, list_groups
from examples.broker.handlers.group_membership import (
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from examples.broker.handlers.group_offsets import offset_commit, offset_delete, offset_fetch
from examples.broker.handlers.logs import describe_log_dirs, describe_producers
from examples.broker.handlers.reads import fetch, list_offsets, offset_for_leader_epoch
from examples.broker.handlers.topic_admin import (
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    list_partition_reassignments,
)
from examples.broker.handlers.writes import delete_records, init_producer_id, produce
from examples.broker.metadata import BrokerRegistration
from examples.broker.protocol import apis
from examples.broker.protocol.apis import Api
from examples.broker.protocol.connection import Handler
from examples.broker.replication.fetch_sessions import FetchSessions
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition


def routes(replicas: ReplicaManager, groups: GroupCoordinator, admin: ClusterAdmin) -> Mapping[int, Handler]:
    """Return the handler of each API by its key. ApiVersions is missing: the server answers that itself."""
    directory = OffsetsTopicDirectory(admin, groups)
    handlers: Mapping[Api, Handler] = {
        apis.PRODUCE: partial(produce, replicas),
        apis.FETCH: partial(fetch, FetchSessions(replicas)),
        apis.LIST_OFFSETS: partial(list_offsets, replicas),
        apis.DELETE_RECORDS: partial(delete_records, replicas),
        apis.OFFSET_FOR_LEADER_EPOCH: partial(offset_for_leader_epoch, replicas),
        apis.DESCRIBE_LOG_DIRS: partial(describe_log_dirs, replicas),
        apis.DESCRIBE_PRODUCERS: partial(describe_producers, replicas),
        apis.METADATA: partial(metadata, admin),
        apis.DESCRIBE_CLUSTER: partial(describe_cluster, admin),
        apis.DESCRIBE_TOPIC_PARTITIONS: partial(describe_topic_partitions, admin),
        apis.CREATE_TOPICS: partial(create_topics, admin),
        apis.DELETE_TOPICS: partial(delete_topics, admin),
        apis.CREATE_PARTITIONS: partial(create_partitions, admin),
        apis.LIST_PARTITION_REASSIGNMENTS: partial(list_partition_reassignments, admin),
        apis.DESCRIBE_CONFIGS: partial(describe_configs, admin),
        apis.ALTER_CONFIGS: partial(alter_configs, admin),
        apis.INCREMENTAL_ALTER_CONFIGS: partial(incremental_alter_configs, admin),
        apis.ELECT_LEADERS: partial(elect_leaders, admin),
        apis.INIT_PRODUCER_ID: partial(init_producer_id, admin.controller),
        apis.FIND_COORDINATOR: partial(find_coordinator, directory.coordinator_of),
        apis.JOIN_GROUP: partial(join_group, groups),
        apis.SYNC_GROUP: partial(sync_group, groups),
        apis.HEARTBEAT: partial(heartbeat, groups),
        apis.LEAVE_GROUP: partial(leave_group, groups),
        apis.OFFSET_COMMIT: partial(offset_commit, groups, admin.cache),
        apis.OFFSET_FETCH: partial(offset_fetch, groups),
        apis.OFFSET_DELETE: partial(offset_delete, groups, admin.cache),
        apis.DESCRIBE_GROUPS: partial(describe_groups, groups),
        apis.LIST_GROUPS: partial(list_groups, groups),
        apis.DELETE_GROUPS: partial(delete_groups, groups),
    }
    return {api.key: handler for api, handler in handlers.items()}


class OffsetsTopicDirectory:
    """The lookup of a group's coordinator. The first one creates the topic."""

    def __init__(self, admin: ClusterAdmin, groups: GroupCoordinator) -> None:
        self._admin = admin
        self._groups = groups

    async def coordinator_of(self, group_id: str) -> BrokerRegistration:
        """Return the coordinator. Raises ApiError COORDINATOR_NOT_AVAILABLE without a live leader."""
        try:
            await self._admin.ensure_offsets_topic()
        except ApiError as error:
            # For example, all brokers are fenced. This passes, so the client should retry.
            raise ApiError(ErrorCode.coordinator_not_available, str(error)) from error
        partition = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(group_id))
        image = self._admin.cache.image
        state = image.partition(partition)
        broker = image.brokers.get(state.leader) if state is not None else None
        if broker is None or broker.fenced:
            raise ApiError(ErrorCode.coordinator_not_available, f"{partition} has no leader")
        return broker
