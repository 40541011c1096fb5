"""Which handler answers which API, and on whose behalf."""

from collections.abc import Mapping
from functools import partial

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.handlers.configs import describe_configs
from examples.broker.handlers.delete_records import delete_records
from examples.broker.handlers.elections import elect_leaders
from examples.broker.handlers.fetch import fetch
from examples.broker.handlers.find_coordinator import find_coordinator
from examples.broker.handlers.group_admin import delete_groups, describe_groups, list_groups
from examples.broker.handlers.group_membership import heartbeat, join_group, leave_group, sync_group
from examples.broker.handlers.group_offsets import offset_commit, offset_fetch
from examples.broker.handlers.leader_epochs import offset_for_leader_epoch
from examples.broker.handlers.list_offsets import list_offsets
from examples.broker.handlers.metadata import describe_cluster, metadata
from examples.broker.handlers.produce import produce
from examples.broker.handlers.producer_ids import init_producer_id
from examples.broker.handlers.topics import create_topics, delete_topics
from examples.broker.node.coordinator_directory import OffsetsTopicDirectory
from examples.broker.protocol import apis
from examples.broker.protocol.connection import Handler
from examples.broker.replication.replica_manager import ReplicaManager


def routes(replicas: ReplicaManager, groups: GroupCoordinator, admin: ClusterAdmin) -> Mapping[int, Handler]:
    """By API key. ApiVersions is the server's own."""
    directory = OffsetsTopicDirectory(admin, groups)
    return {
        apis.PRODUCE.key: partial(produce, replicas),
        apis.FETCH.key: partial(fetch, replicas),
        apis.LIST_OFFSETS.key: partial(list_offsets, replicas),
        apis.DELETE_RECORDS.key: partial(delete_records, replicas),
        apis.OFFSET_FOR_LEADER_EPOCH.key: partial(offset_for_leader_epoch, replicas),
        apis.METADATA.key: partial(metadata, admin),
        apis.DESCRIBE_CLUSTER.key: partial(describe_cluster, admin),
        apis.CREATE_TOPICS.key: partial(create_topics, admin),
        apis.DELETE_TOPICS.key: partial(delete_topics, admin),
        apis.DESCRIBE_CONFIGS.key: partial(describe_configs, admin),
        apis.ELECT_LEADERS.key: partial(elect_leaders, admin),
        apis.INIT_PRODUCER_ID.key: partial(init_producer_id, admin.controller),
        apis.FIND_COORDINATOR.key: partial(find_coordinator, directory),
        apis.JOIN_GROUP.key: partial(join_group, groups),
        apis.SYNC_GROUP.key: partial(sync_group, groups),
        apis.HEARTBEAT.key: partial(heartbeat, groups),
        apis.LEAVE_GROUP.key: partial(leave_group, groups),
        apis.OFFSET_COMMIT.key: partial(offset_commit, groups),
        apis.OFFSET_FETCH.key: partial(offset_fetch, groups),
        apis.DESCRIBE_GROUPS.key: partial(describe_groups, groups),
        apis.LIST_GROUPS.key: partial(list_groups, groups),
        apis.DELETE_GROUPS.key: partial(delete_groups, groups),
    }
