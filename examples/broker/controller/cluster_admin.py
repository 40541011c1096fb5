"""What one broker does for the clients that administer the cluster: it forwards, and waits until it sees."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Self

from examples.broker.controller.cluster_defaults import OFFSETS_TOPIC, ClusterDefaults
from examples.broker.controller.controller import Controller
from examples.broker.controller.delayed_elect_leader import DelayedElectLeader
from examples.broker.controller.delayed_topics import DelayedTopics
from examples.broker.controller.election import ElectionType
from examples.broker.controller.metadata_cache import MetadataCache, TopicsDelta
from examples.broker.controller.new_topic import NewTopic, check_total_partitions
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState, TopicImage
from examples.broker.topic_partition import TopicPartition
from purgatory import Purgatory, PurgatoryError, PurgatoryStatistics

# How long who asks for a topic that has to be created first waits for it, in seconds. Kafka does not wait: it
# answers LEADER_NOT_AVAILABLE, and is asked again.
AUTO_CREATION_TIMEOUT: Final = 5.0


class ClusterAdmin:
    """Forwards changes to the controller, and answers when this broker's own cache shows them.

    The node that owns it passes every image through: ``delta = cache.update(image)``, then its replicas, then
    ``image_applied(delta)``. What a purgatory refuses, as when the broker stops, is answered as if its time
    were over.
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
        """With its two purgatories, "topic" and "elect leader", which close when the block ends."""
        async with Purgatory("topic") as topic, Purgatory("elect leader") as elect_leader:
            yield cls(controller, cache, topic=topic, elect_leader=elect_leader)

    def __repr__(self) -> str:
        return f"<ClusterAdmin of {self.cache!r}>"

    @property
    def defaults(self) -> ClusterDefaults:
        return self.controller.defaults

    def statistics(self) -> Mapping[str, PurgatoryStatistics]:
        """By the purgatories' names."""
        purgatories = (self.topic_purgatory, self.elect_leader_purgatory)
        return {purgatory.name: purgatory.statistics() for purgatory in purgatories}

    def image_applied(self, delta: TopicsDelta) -> None:
        """This broker acts by the new image from now on: whoever waits for what is new in it learns so."""
        topic_partitions = delta.deleted | delta.changed.keys()
        for name in {topic_partition.topic for topic_partition in topic_partitions}:
            self.topic_purgatory.check_and_complete(name)
        for topic_partition in topic_partitions:
            self.elect_leader_purgatory.check_and_complete(topic_partition)

    def plan_topics(self, topics: Sequence[NewTopic]) -> dict[str, TopicImage | ApiError]:
        """Each as it would be created, or why it would not be."""
        return self._each(topics, self.controller.plan_topic)

    async def create_topics(
        self, topics: Sequence[NewTopic], timeout: float
    ) -> dict[str, TopicImage | ApiError]:
        """Create each, waiting up to ``timeout`` seconds; what came of it, or why it did not.

        REQUEST_TIMED_OUT is for topics that are created, but not known here yet.
        """
        results = self._each(topics, self.controller.create_topic)
        created = [topic for topic in results.values() if isinstance(topic, TopicImage)]
        for name in await self._wait(DelayedTopics(timeout, self.cache, created=created), created):
            results[name] = ApiError(
                ErrorCode.REQUEST_TIMED_OUT, f"{name!r} is created, but not known here yet"
            )
        return results

    async def delete_topics(self, names: Iterable[str], timeout: float) -> dict[str, TopicImage | ApiError]:
        """Delete each, waiting up to ``timeout`` seconds; what it was, or why it is not deleted.

        REQUEST_TIMED_OUT is for topics that are deleted, but still known here.
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
                ErrorCode.REQUEST_TIMED_OUT, f"{name!r} is deleted, but still known here"
            )
        return results

    async def elect_leaders(
        self, election: ElectionType, topic_partitions: Iterable[TopicPartition] | None, timeout: float
    ) -> dict[TopicPartition, PartitionState | ApiError]:
        """As the controller does it, waiting up to ``timeout`` seconds until the leaders are known here.

        REQUEST_TIMED_OUT is for those that are elected, but not known here yet.
        """
        results = self.controller.elect_leaders(election, topic_partitions)
        elected = {entry: state for entry, state in results.items() if isinstance(state, PartitionState)}
        if elected:
            delayed = DelayedElectLeader(timeout, self.cache, elected)
            try:
                waiting = await self.elect_leader_purgatory.try_complete_else_watch(delayed, elected)
            except PurgatoryError:
                waiting = delayed.on_complete()
            for topic_partition in waiting:
                results[topic_partition] = ApiError(
                    ErrorCode.REQUEST_TIMED_OUT, f"the new leader of {topic_partition} is not known here yet"
                )
        return results

    async def auto_create(self, names: Iterable[str]) -> dict[str, TopicImage | ApiError]:
        """The topics, created now unless they are there; whoever creates one at the same time shares it.

        LEADER_NOT_AVAILABLE when one is not known here after ``AUTO_CREATION_TIMEOUT``.
        """
        known, names = self.controller.image.topics, dict.fromkeys(names)
        results: dict[str, TopicImage | ApiError] = {name: known[name] for name in names if name in known}
        missing = [self._automatic(name) for name in names if name not in known]
        results |= self._each(missing, self.controller.create_topic)
        found = [topic for topic in results.values() if isinstance(topic, TopicImage)]
        for name in await self._wait(DelayedTopics(AUTO_CREATION_TIMEOUT, self.cache, created=found), found):
            results[name] = ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{name!r} is not known here yet")
        return results

    async def ensure_offsets_topic(self) -> TopicImage:
        """``__consumer_offsets``, created on first use. ApiError when it cannot be, say without brokers."""
        topic = (await self.auto_create([OFFSETS_TOPIC]))[OFFSETS_TOPIC]
        if isinstance(topic, ApiError):
            raise topic
        return topic

    def _each(
        self, topics: Sequence[NewTopic], act: Callable[[NewTopic], TopicImage]
    ) -> dict[str, TopicImage | ApiError]:
        """What ``act`` makes of each topic, or why it does not: of none, when they are too much together."""
        try:
            check_total_partitions(topics, self.defaults)
        except ApiError as too_many:
            return {topic.name: too_many for topic in topics}
        results: dict[str, TopicImage | ApiError] = {}
        for topic in topics:
            try:
                results[topic.name] = act(topic)
            except ApiError as error:
                results[topic.name] = error
        return results

    def _automatic(self, name: str) -> NewTopic:
        if name != OFFSETS_TOPIC:
            return NewTopic(name)
        replicas = min(self.defaults.offsets_topic_replication_factor, len(self.controller.image.brokers))
        return NewTopic(name, self.defaults.offsets_topic_num_partitions, replicas)

    async def _wait(self, delayed: DelayedTopics, topics: Sequence[TopicImage]) -> Iterable[str]:
        """The names of those that were still not as they should be at the timeout."""
        if not topics:
            return ()
        try:
            return await self.topic_purgatory.try_complete_else_watch(
                delayed, [topic.name for topic in topics]
            )
        except PurgatoryError:
            return delayed.on_complete()
