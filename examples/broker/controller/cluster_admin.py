"""Cluster administration through one broker: it forwards to the controller and waits for the new metadata."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, Self, TypeVar

from examples.broker.controller.controller import Controller
from examples.broker.controller.election import ElectionType
from examples.broker.controller.metadata_cache import MetadataCache, TopicsDelta
from examples.broker.controller.new_topic import NewPartitions, NewTopic, check_total_partitions
from examples.broker.controller.settings import OFFSETS_TOPIC, ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState, TopicImage
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.elect_leader import DelayedElectLeader, check_elections, park_election
from examples.broker.waits.topics import DelayedTopics, check_topics, park_topics
from purgatory import Purgatory, PurgatoryStatistics

# Seconds for which a request waits for a topic that is created for it. Kafka does not wait: it answers
# LEADER_NOT_AVAILABLE, and the client retries.
AUTO_CREATION_TIMEOUT: Final = 5.0

T = TypeVar("T")
TopicResults = dict[str, TopicImage | ApiError]
"""The result of a change by the name of its topic: the topic, or the error."""


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
            check_topics(self.topic_purgatory, name)
        for topic_partition in topic_partitions:
            check_elections(self.elect_leader_purgatory, topic_partition)

    def plan(self, new: Sequence[NewTopic | NewPartitions]) -> TopicResults:
        """Return each topic as ``create`` would create or change it, or the error."""
        return self._each_new(new, self.controller.planned)

    async def create(self, new: Sequence[NewTopic | NewPartitions], timeout: float) -> TopicResults:
        """Create topics, or add partitions to topics; wait up to ``timeout`` seconds for them.

        Returns each topic or its error. The error is REQUEST_TIMED_OUT for what is created but not in this
        broker's metadata yet.
        """
        results = self._each_new(new, self.controller.create)
        for name in await self._late(results, timeout, self.cache.shows):
            results[name] = ApiError(
                ErrorCode.request_timed_out, f"{name!r} is created, but not in this broker's metadata yet"
            )
        return results

    async def delete_topics(self, names: Iterable[str], timeout: float) -> TopicResults:
        """Delete the topics, and wait up to ``timeout`` seconds; return each deleted topic or its error.

        The error is REQUEST_TIMED_OUT for a topic that is deleted but still in this broker's metadata.
        """
        results = _each({name: name for name in names}, self.controller.delete_topic)
        for name in await self._late(results, timeout, self.cache.lacks):
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
        epochs = {
            entry: state.leader_epoch for entry, state in results.items() if isinstance(state, PartitionState)
        }
        if epochs:
            delayed = DelayedElectLeader(timeout, epochs, self._leader_epoch)
            for topic_partition in await park_election(self.elect_leader_purgatory, delayed):
                results[topic_partition] = ApiError(
                    ErrorCode.request_timed_out,
                    f"the new leader of {topic_partition} is not in this broker's metadata yet",
                )
        return results

    async def auto_create(self, names: Iterable[str]) -> TopicResults:
        """Return the topics, after creating those that do not exist; concurrent calls get the same topic.

        The error is LEADER_NOT_AVAILABLE for a topic that is not in this broker's metadata after
        ``AUTO_CREATION_TIMEOUT`` seconds.
        """
        known, names = self.controller.image.topics, dict.fromkeys(names)
        results: TopicResults = {name: known[name] for name in names if name in known}
        missing = [self._automatic(name) for name in names if name not in known]
        results |= self._each_new(missing, self.controller.create)
        for name in await self._late(results, AUTO_CREATION_TIMEOUT, self.cache.shows):
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

    def _each_new(
        self,
        new: Sequence[NewTopic | NewPartitions],
        act: Callable[[NewTopic | NewPartitions], TopicImage],
    ) -> TopicResults:
        """Call ``act`` for each topic. With too many partitions in all, every topic has that error."""
        wanted = {topic.name: topic for topic in new}
        try:
            check_total_partitions(topic.added(self.controller.image, self.defaults) for topic in new)
        except ApiError as too_many:
            return dict.fromkeys(wanted, too_many)
        return _each(wanted, act)

    def _automatic(self, name: str) -> NewTopic:
        if name != OFFSETS_TOPIC:
            return NewTopic(name)
        replicas = min(self.defaults.offsets_topic_replication_factor, len(self.controller.image.brokers))
        # A latest record may be as old as the group.
        config = replace(self.defaults.topic_config, retention_ms=-1, retention_bytes=-1)
        return NewTopic(name, self.defaults.offsets_topic_num_partitions, replicas, config=config)

    async def _late(
        self, results: TopicResults, timeout: float, is_known: Callable[[TopicImage], bool]
    ) -> Iterable[str]:
        """Wait for the topics that have changed; return the names of those that are not known in time."""
        changed = [topic for topic in results.values() if isinstance(topic, TopicImage)]
        if not changed:
            return ()
        return await park_topics(self.topic_purgatory, DelayedTopics(timeout, changed, is_known))

    def _leader_epoch(self, topic_partition: TopicPartition) -> int:
        state = self.cache.image.partition(topic_partition)
        return -1 if state is None else state.leader_epoch


def _each(wanted: Mapping[str, T], act: Callable[[T], TopicImage]) -> TopicResults:
    """Call ``act`` for what is wanted of each topic, and return its result or its error."""
    results: TopicResults = {}
    for name, topic in wanted.items():
        try:
            results[name] = act(topic)
        except ApiError as error:
            results[name] = error
    return results
