"""One broker's copy of the metadata, and what differs between two images."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from examples.broker.metadata import NO_LEADER, MetadataImage, PartitionState, TopicImage, address
from examples.broker.topic_partition import TopicPartition

# A broker that fails may have led thousands of partitions.
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class TopicsDelta:
    """The changes of the topics between two images (org.apache.kafka.image.TopicsDelta).

    When the configuration of a topic changes, so do all its partitions. A topic that was deleted and created
    again in between has its partitions in both sets. So apply the ``deleted`` first, then the ``changed``,
    which include the new partitions.
    """

    deleted: frozenset[TopicPartition] = frozenset()
    changed: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)


class MetadataCache:
    """The latest image that one broker has, which may be older than the controller's."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self._image = MetadataImage()

    def __repr__(self) -> str:
        return f"<MetadataCache of broker {self.broker_id} image={self._image.version}>"

    @property
    def image(self) -> MetadataImage:
        return self._image

    @property
    def controller_id(self) -> int:
        """The broker that clients see as the controller: this one, since it forwards to the controller.

        Another live broker while this one is fenced; NO_LEADER while all are.
        """
        live = self._image.live_brokers
        return self.broker_id if self.broker_id in live else next(iter(live), NO_LEADER)

    def holds(self, topic: TopicImage) -> bool:
        """Return whether the image has this very topic, not an earlier or later one of the same name."""
        known = self._image.topics.get(topic.name)
        return known is not None and known.topic_id == topic.topic_id

    def lacks(self, topic: TopicImage) -> bool:
        return not self.holds(topic)

    def shows(self, topic: TopicImage) -> bool:
        """Return whether the image has this very topic, with all its partitions."""
        return self.holds(topic) and len(self._image.topics[topic.name].partitions) >= len(topic.partitions)

    def update(self, image: MetadataImage) -> TopicsDelta:
        """Replace the image, and return the changes. An image that is not newer is ignored."""
        known = self._image
        if image.version <= known.version:
            return TopicsDelta()
        self._image = image
        deleted = frozenset(
            entry for topic in known.topics.values() if self.lacks(topic) for entry, _ in _partitions(topic)
        )
        changed: dict[TopicPartition, PartitionState] = {}
        for topic in image.topics.values():
            before = known.topics.get(topic.name)
            if topic is not before:
                configured = before is not None and topic.config != before.config
                changed |= {
                    entry: state
                    for entry, state in _partitions(topic)
                    if configured or entry in deleted or state != known.partition(entry)
                }
        return TopicsDelta(deleted, changed)


def changes(before: MetadataImage, after: MetadataImage) -> Iterator[str]:
    """Return lines for the log: what happened to brokers and topics, and which partitions have new leaders.

    Changes of the in-sync replicas are left out: a follower that lags a little leaves and joins again.
    """
    for broker_id, broker in after.brokers.items():
        if broker != before.brokers.get(broker_id):
            state = "is fenced" if broker.fenced else f"is live at {address(broker.host, broker.port)}"
            yield f"broker {broker_id} {state}"
    moved: dict[tuple[int, int], list[str]] = {}
    for name, topic in after.topics.items():
        known = before.topics.get(name)
        if known is None:
            yield f"topic {name!r} is created, partitions: {len(topic.partitions)}"
        elif known is not topic:
            for index, (old, new) in enumerate(zip(known.partitions, topic.partitions, strict=False)):
                if old.leader != new.leader:
                    moved.setdefault((old.leader, new.leader), []).append(f"{name}-{index}")
    for name in before.topics:
        if name not in after.topics:
            yield f"topic {name!r} is deleted"
    for (old_leader, new_leader), partitions in moved.items():
        leader = "nobody" if new_leader == NO_LEADER else f"broker {new_leader}"
        instead = "" if old_leader == NO_LEADER else f", instead of broker {old_leader}"
        yield f"{leader} leads {_listed(partitions)}{instead}"


def _partitions(topic: TopicImage) -> list[tuple[TopicPartition, PartitionState]]:
    return [(TopicPartition(topic.name, index), state) for index, state in enumerate(topic.partitions)]


def _listed(partitions: list[str]) -> str:
    more = len(partitions) - _NAMED
    return ", ".join(partitions[:_NAMED]) + (f" and {more} more" if more > 0 else "")
