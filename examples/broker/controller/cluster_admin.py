"""Cluster administration through one broker: it forwards to the controller and waits for the new metadata."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, Self, TypeVar

from examples.broker.controller.controller import Controller
from examples.broker.controller.delayed_elect_leader import DelayedElectLeader
from examples.broker.controller.delayed_topics import DelayedTopics
from examples.broker.controller.election import ElectionType
from examples.broker.controller.metadata_cache import MetadataCache, TopicsDelta
from examples.broker.controller.new_partitions import NewPartitions
from examples.broker.controller.new_topic import NewTopic, check_total_partitions
from examples.broker.controller.settings import OFFSETS_TOPIC, ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState, TopicImage
from examples.broker.topic_partition import TopicPartition
from purgatory import Purgatory, PurgatoryError, PurgatoryStatistics

T = TypeVar("T")

# Seconds for which a request waits for a topic that is created for it. Kafka does not wait: it answers
# LEADER_NOT_AVAILABLE, and the client retries.
AUTO_CREATION_TIMEOUT: Final = 5.0


class ClusterAdmin:
    """Forwards changes to the controller, and answers when this broker's metadata cache shows them.

    For every image, the node calls ``delta = cache.update(image)``, updates its replicas and then calls
    ``image_applied(delta)``. An operation that a purgatory refuses, as when the broker stops, is answered as
    if it had timed out.
    """

    def __init__(
        self, controller: Controller, cache: MetadataCache, *, topic: Purgatory, elect_leader: Purgatory
    ) -> None:
        self.controller = controller
        self.cache = cache
        self.topic_purgatory = topic
        self.elect_leader_purgatory = elect_leader

    @classmethod
    @asynccontextmanager
    async def running(cls, controller: Controller, cache: MetadataCache) -> AsyncIterator[Self]:
        """Open the purgatories "topic" and "elect leader", and close them when the block ends."""
        async with Purgatory("topic") as topic, Purgatory("elect leader") as elect_leader:
            yield cls(controller, cache, topic=topic, elect_leader=elect_leader)

    def __repr__(self) -> str:
        return f"<ClusterAdmin of {self.cache!r}>"

    @property
    def defaults(self) -> ClusterDefaults:
        return self.controller.defaults

    def statistics(self) -> Mapping[str, PurgatoryStatistics]:
        """Return the statistics of both purgatories by name."""
        purgatories = (self.topic_purgatory, self.elect_leader_purgatory)
        return {purgatory.name: purgatory.statistics() for purgatory in purgatories}

    def image_applied(self, delta: TopicsDelta) -> None:
        """Complete the operations that wait for a change in the image that this broker has applied."""
        topic_partitions = delta.deleted | delta.changed.keys()
        for name in {topic_partition.topic for topic_partition in topic_partitions}:
            self.topic_purgatory.check_and_complete(name)
        for topic_partition in topic_partitions:
            self.elect_leader_purgatory.check_and_complete(topic_partition)

    def plan_topics(self, topics: Sequence[NewTopic]) -> dict[str, TopicImage | ApiError]:
        """Return each topic as it would be created, or the error."""
        return self._each_new(topics, self.controller.plan_topic)

    async def create_topics(
        self, topics: Sequence[NewTopic], timeout: float
    ) -> dict[str, TopicImage | ApiError]:
        """Create the topics, and wait up to ``timeout`` seconds for them; return each topic or its error.

        The error is REQUEST_TIMED_OUT for a topic that exists but is not in this broker's metadata yet.
        """
        return await self._created(self._each_new(topics, self.controller.create_topic), timeout)

    def plan_partitions(self, topics: Sequence[NewPartitions]) -> dict[str, TopicImage | ApiError]:
        """Return each topic as it would be after ``create_partitions``, or the error."""
        return self._each_grown(topics, self.controller.plan_partitions)

    async def create_partitions(
        self, topics: Sequence[NewPartitions], timeout: float
    ) -> dict[str, TopicImage | ApiError]:
        """Add partitions, and wait up to ``timeout`` seconds for them; return each topic or its error.

        The error is REQUEST_TIMED_OUT for partitions that exist but are not in this broker's metadata yet.
        """
        return await self._created(self._each_grown(topics, self.controller.create_partitions), timeout)

    async def delete_topics(self, names: Iterable[str], timeout: float) -> dict[str, TopicImage | ApiError]:
        """Delete the topics, and wait up to ``timeout`` seconds; return each deleted topic or its error.

        The error is REQUEST_TIMED_OUT for a topic that is deleted but still in this broker's metadata.
        """
        results: dict[str, TopicImage | ApiError] = {}
        for name in dict.fromkeys(names):
            try:
                results[name] = self.controller.delete_topic(name)
            except ApiError as error:
                results[name] = error
        deleted = [topic for topic in results.values() if isinstance(topic, TopicImage)]
        for name in await self._wait(DelayedTopics(timeout, self.cache, deleted=deleted), deleted):
            results[name] = ApiError(
                ErrorCode.request_timed_out, f"{name!r} is deleted, but still in this broker's metadata"
            )
        return results

    async def elect_leaders(
        self, election: ElectionType, topic_partitions: Iterable[TopicPartition] | None, timeout: float
    ) -> dict[TopicPartition, PartitionState | ApiError]:
        """Elect leaders as the controller does, and wait up to ``timeout`` seconds for the new metadata.

        The error is REQUEST_TIMED_OUT for a leader that is elected but not in this broker's metadata yet.
        """
        results = self.controller.elect_leaders(election, topic_partitions)
        elected = {entry: state for entry, state in results.items() if isinstance(state, PartitionState)}
        if elected:
            delayed = DelayedElectLeader(timeout, self.cache, elected)
            try:
                pending = await self.elect_leader_purgatory.try_complete_else_watch(delayed, elected)
            except PurgatoryError:
                pending = delayed.on_complete()
            for topic_partition in pending:
                results[topic_partition] = ApiError(
                    ErrorCode.request_timed_out,
                    f"the new leader of {topic_partition} is not in this broker's metadata yet",
                )
        return results

    async def auto_create(self, names: Iterable[str]) -> dict[str, TopicImage | ApiError]:
        """Return the topics, after creating those that do not exist; concurrent calls get the same topic.

        The error is LEADER_NOT_AVAILABLE for a topic that is not in this broker's metadata after
        ``AUTO_CREATION_TIMEOUT`` seconds.
        """
        known, names = self.controller.image.topics, dict.fromkeys(names)
        results: dict[str, TopicImage | ApiError] = {name: known[name] for name in names if name in known}
        missing = [self._automatic(name) for name in names if name not in known]
        results |= self._each_new(missing, self.controller.create_topic)
        found = [topic for topic in results.values() if isinstance(topic, TopicImage)]
        for name in await self._wait(DelayedTopics(AUTO_CREATION_TIMEOUT, self.cache, created=found), found):
            results[name] = ApiError(
                ErrorCode.leader_not_available, f"{name!r} is not in this broker's metadata yet"
            )
        return results

    async def ensure_offsets_topic(self) -> TopicImage:
        """Return ``__consumer_offsets``, which is created on first use.

        Raises ApiError when it cannot be created, for example without a live broker.
        """
        topic = (await self.auto_create([OFFSETS_TOPIC]))[OFFSETS_TOPIC]
        if isinstance(topic, ApiError):
            raise topic
        return topic

    async def _created(
        self, results: dict[str, TopicImage | ApiError], timeout: float
    ) -> dict[str, TopicImage | ApiError]:
        """Wait for the topics that were created or have more partitions; return all results."""
        created = [topic for topic in results.values() if isinstance(topic, TopicImage)]
        for name in await self._wait(DelayedTopics(timeout, self.cache, created=created), created):
            results[name] = ApiError(
                ErrorCode.request_timed_out, f"{name!r} is created, but not in this broker's metadata yet"
            )
        return results

    def _each_new(
        self, topics: Sequence[NewTopic], act: Callable[[NewTopic], TopicImage]
    ) -> dict[str, TopicImage | ApiError]:
        return _each(
            {topic.name: topic for topic in topics}, [topic.size(self.defaults) for topic in topics], act
        )

    def _each_grown(
        self, topics: Sequence[NewPartitions], act: Callable[[NewPartitions], TopicImage]
    ) -> dict[str, TopicImage | ApiError]:
        known = self.controller.image.topics
        added = [more.total - len(known[more.topic].partitions) for more in topics if more.topic in known]
        return _each({more.topic: more for more in topics}, added, act)

    def _automatic(self, name: str) -> NewTopic:
        if name != OFFSETS_TOPIC:
            return NewTopic(name)
        replicas = min(self.defaults.offsets_topic_replication_factor, len(self.controller.image.brokers))
        # A latest record may be as old as the group.
        config = replace(self.defaults.topic_config, retention_ms=-1, retention_bytes=-1)
        return NewTopic(name, self.defaults.offsets_topic_num_partitions, replicas, config=config)

    async def _wait(self, delayed: DelayedTopics, topics: Sequence[TopicImage]) -> Iterable[str]:
        """Return the names of the topics that are still pending at the timeout."""
        if not topics:
            return ()
        try:
            return await self.topic_purgatory.try_complete_else_watch(
                delayed, [topic.name for topic in topics]
            )
        except PurgatoryError:
            return delayed.on_complete()


def _each(
    wanted: Mapping[str, T], added_partitions: Iterable[int], act: Callable[[T], TopicImage]
) -> dict[str, TopicImage | ApiError]:
    """Call ``act`` for what is wanted of each topic, and return its result or its error.

    With too many partitions in all, every topic has that error.
    """
    try:
        check_total_partitions(added_partitions)
    except ApiError as too_many:
        return dict.fromkeys(wanted, too_many)
    results: dict[str, TopicImage | ApiError] = {}
    for name, topic in wanted.items():
        try:
            results[name] = act(topic)
        except ApiError as error:
            results[name] = error
    return results
