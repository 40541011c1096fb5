"""Which broker coordinates a group: the leader of the group's partition of ``__consumer_offsets``."""

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.cluster_defaults import OFFSETS_TOPIC
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.metadata import BrokerRegistration
from examples.broker.topic_partition import TopicPartition


class OffsetsTopicDirectory:
    """The ``CoordinatorDirectory`` of a broker; the topic comes into being when it is first asked for."""

    def __init__(self, admin: ClusterAdmin, groups: GroupCoordinator) -> None:
        self._admin = admin
        self._groups = groups

    async def coordinator_of(self, group_id: str) -> BrokerRegistration:
        """Its coordinator. ApiError COORDINATOR_NOT_AVAILABLE while the partition has no live leader."""
        try:
            await self._admin.ensure_offsets_topic()
        except ApiError as error:
            # Such as that all brokers are fenced: it passes, and who only asks for a group is to ask again.
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        partition = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(group_id))
        image = self._admin.cache.image
        state = image.partition(partition)
        broker = image.brokers.get(state.leader) if state is not None else None
        if broker is None or broker.fenced:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{partition} has no leader")
        return broker
