"""The lookup of a group's coordinator: the leader of the group's partition of ``__consumer_offsets``."""

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.metadata import BrokerRegistration
from examples.broker.topic_partition import TopicPartition


class OffsetsTopicDirectory:
    """The ``CoordinatorDirectory`` of a broker. The first lookup creates the topic."""

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
