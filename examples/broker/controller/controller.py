"""The controller, which alone changes brokers, topics, leaders and in-sync replicas."""

import base64
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import Final, Self
from uuid import uuid4

from examples.broker.controller.election import ElectionType, elect, reelect
from examples.broker.controller.metadata_cache import changes
from examples.broker.controller.new_topic import NewPartitions, NewTopic
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import (
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicConfig,
    TopicImage,
)
from examples.broker.topic_partition import TopicPartition
from purgatory import Purgatory, Session

IMAGE: Final = "image"

logger = logging.getLogger(__name__)


class Controller:
    """The cluster's metadata and all changes to it: Kafka's QuorumController in a quorum of one.

    The controller is no broker; every broker forwards changes to it. Each change publishes one new image
    atomically. The brokers wait for it in ``image_after``, each at its own pace. Time matters for the broker
    sessions alone.
    """

    def __init__(self, defaults: ClusterDefaults, *, sessions: Purgatory, images: Purgatory) -> None:
        self.defaults = defaults
        self.session_purgatory = sessions
        self.image_purgatory = images
        self._sessions: dict[int, Session] = {}
        self.cluster_id = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        self._image = MetadataImage()
        self._producer_ids = count()

    @classmethod
    @asynccontextmanager
    async def running(cls, defaults: ClusterDefaults) -> AsyncIterator[Self]:
        """Open the purgatories "image" and "broker session", and close them when the block ends."""
        async with Purgatory("image") as images, Purgatory("broker session") as sessions:
            yield cls(defaults, sessions=sessions, images=images)

    def __repr__(self) -> str:
        image = self._image
        return (
            f"<Controller image={image.version} live={sorted(image.live_brokers)} topics={len(image.topics)}>"
        )

    @property
    def image(self) -> MetadataImage:
        return self._image

    async def image_after(self, version: int) -> MetadataImage:
        """Wait for an image that is later than ``version``, and return the latest one.

        All changes in one iteration of the event loop arrive as one image. Raises TimeoutError when the
        controller closes.
        """
        await self.image_purgatory.wait_until(lambda: self._image.version > version, [IMAGE])
        return self._image

    # Brokers

    def register(self, registration: BrokerRegistration) -> None:
        """Register a broker that has started, and begin its session.

        If the broker was registered and live, other brokers take over its leaderships. It leads a partition
        again, in a new leader epoch, where no other replica is in sync.
        """
        self.fence(registration.broker_id)
        self._unfence(registration)

    def heartbeat(self, broker_id: int) -> None:
        """Extend a broker's session; unfence it if it was fenced. Raises KeyError if it never registered."""
        session = self._sessions.get(broker_id)
        if session is None:
            self._unfence(self._image.brokers[broker_id])
        else:
            session.renew()

    def fence(self, broker_id: int) -> None:
        """Fence a broker that stops or whose session timed out: it leads nothing any more.

        It leaves the in-sync replicas of each partition, unless it is the last one. It has no effect on a
        broker that is fenced or unknown.
        """
        session = self._sessions.pop(broker_id, None)
        if session is not None:
            session.cancel()
            self._put_broker(replace(self._image.brokers[broker_id], fenced=True))

    def _unfence(self, registration: BrokerRegistration) -> None:
        self._put_broker(replace(registration, fenced=False))
        broker_id = registration.broker_id
        session = Session(self.defaults.broker_session_timeout, lambda: self._session_expired(broker_id))
        self._sessions[broker_id] = self.session_purgatory.try_complete_else_watch(session, [broker_id])

    def _session_expired(self, broker_id: int) -> None:
        timeout = self.defaults.broker_session_timeout
        logger.info("broker %d has sent no heartbeat for %g s", broker_id, timeout)
        self.fence(broker_id)

    # Topics

    def planned(self, new: NewTopic | NewPartitions) -> TopicImage:
        """Return the topic as ``create`` would create or change it now. Raises what that would raise."""
        return new.planned(self._image, self.defaults)

    def create(self, new: NewTopic | NewPartitions) -> TopicImage:
        """Create a topic, or add partitions to one; return the topic.

        Raises ApiError: an error of ``planned`` of its class.
        """
        return self._put_topic(self.planned(new))

    def delete_topic(self, name: str) -> TopicImage:
        """Delete a topic, and return it.

        Raises ApiError UNKNOWN_TOPIC_OR_PARTITION when it does not exist.
        """
        topic = self._image.topic(name)
        self._publish(topics={key: kept for key, kept in self._image.topics.items() if kept is not topic})
        return topic

    def alter_topic_config(self, name: str, config: TopicConfig) -> TopicImage:
        """Replace the configuration of a topic, and return the topic.

        Raises ApiError UNKNOWN_TOPIC_OR_PARTITION when it does not exist.
        """
        return self._put_topic(replace(self._image.topic(name), config=config))

    # Leaders and in-sync replicas

    def elect_leaders(
        self, election: ElectionType, topic_partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, PartitionState | ApiError]:
        """Elect leaders for these partitions, or with None for all partitions that need an election.

        Returns the new state of each partition, or the error: UNKNOWN_TOPIC_OR_PARTITION, or what ``elect``
        raises.
        """
        results: dict[TopicPartition, PartitionState | ApiError] = {}
        elected: dict[TopicPartition, PartitionState] = {}
        live = self._image.live_brokers.keys()
        every = (entry for entry, _ in self._image.partitions())
        for topic_partition in every if topic_partitions is None else topic_partitions:
            try:
                elected[topic_partition] = elect(election, self._partition(topic_partition), live)
            except ApiError as error:
                if topic_partitions is not None or error.code is not ErrorCode.election_not_needed:
                    results[topic_partition] = error
        if elected:
            self._put_partitions(elected)
        return results | elected

    def alter_partition(
        self, broker_id: int, topic_partition: TopicPartition, wanted: PartitionState
    ) -> PartitionState:
        """Change the in-sync replicas to those that the leader, ``broker_id``, wants; return the new state.

        Raises ApiError: UNKNOWN_TOPIC_OR_PARTITION; FENCED_LEADER_EPOCH unless the broker leads in the leader
        epoch of ``wanted``; INVALID_UPDATE_VERSION unless ``wanted`` has the latest partition epoch;
        INVALID_REQUEST without the leader, or with a broker that has no replica; INELIGIBLE_REPLICA with a
        broker that is not live (KIP-841).
        """
        state = self._partition(topic_partition)
        if state.leader != broker_id or state.leader_epoch != wanted.leader_epoch:
            raise ApiError(
                ErrorCode.fenced_leader_epoch,
                f"broker {broker_id} does not lead {topic_partition} in epoch {wanted.leader_epoch}: {state}",
            )
        if state.partition_epoch != wanted.partition_epoch:
            raise ApiError(
                ErrorCode.invalid_update_version,
                f"{topic_partition} is at partition epoch {state.partition_epoch}, "
                f"not at {wanted.partition_epoch}",
            )
        in_sync = set(wanted.in_sync)
        if broker_id not in in_sync or not in_sync.issubset(state.replicas):
            raise ApiError(
                ErrorCode.invalid_request, f"{topic_partition} cannot have {wanted.in_sync} in sync: {state}"
            )
        fenced = in_sync - self._image.live_brokers.keys()
        if fenced:
            raise ApiError(
                ErrorCode.ineligible_replica, f"brokers {sorted(fenced)} are not live: {topic_partition}"
            )
        altered = state.with_in_sync(tuple(replica for replica in state.replicas if replica in in_sync))
        self._put_partitions({topic_partition: altered})
        return altered

    # Producers

    def next_producer_id(self) -> int:
        """Return an id that no producer had before."""
        return next(self._producer_ids)

    # The image

    def _partition(self, topic_partition: TopicPartition) -> PartitionState:
        state = self._image.partition(topic_partition)
        if state is None:
            raise ApiError(
                ErrorCode.unknown_topic_or_partition, f"partition {topic_partition} does not exist"
            )
        return state

    def _put_broker(self, registration: BrokerRegistration) -> None:
        brokers = {**self._image.brokers, registration.broker_id: registration}
        live = replace(self._image, brokers=brokers).live_brokers.keys()
        self._publish(brokers=brokers, topics=_reelect_all(self._image.topics, live))

    def _put_topic(self, topic: TopicImage) -> TopicImage:
        self._publish(topics={**self._image.topics, topic.name: topic})
        return topic

    def _put_partitions(self, states: Mapping[TopicPartition, PartitionState]) -> None:
        topics = dict(self._image.topics)
        for name in {topic_partition.topic for topic_partition in states}:
            before = topics[name].partitions
            after = (states.get(TopicPartition(name, i), state) for i, state in enumerate(before))
            topics[name] = _with_partitions(topics[name], tuple(after))
        self._publish(topics=topics)

    def _publish(
        self,
        *,
        topics: Mapping[str, TopicImage],
        brokers: Mapping[int, BrokerRegistration] | None = None,
    ) -> None:
        before = self._image
        self._image = MetadataImage(
            before.version + 1, before.brokers if brokers is None else brokers, topics
        )
        if logger.isEnabledFor(logging.INFO):
            for change in changes(before, self._image):
                logger.info("%s", change)
        self.image_purgatory.check_and_complete(IMAGE)


def _reelect_all(topics: Mapping[str, TopicImage], live: Set[int]) -> Mapping[str, TopicImage]:
    return {
        name: _with_partitions(topic, tuple(reelect(state, live) for state in topic.partitions))
        for name, topic in topics.items()
    }


def _with_partitions(topic: TopicImage, partitions: tuple[PartitionState, ...]) -> TopicImage:
    # Return the same object when nothing has changed, so that a cache finds changed topics by identity.
    return topic if partitions == topic.partitions else replace(topic, partitions=partitions)
