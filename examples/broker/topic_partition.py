"""The name of a partition."""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class TopicPartition(NamedTuple):
    """A topic and a partition number, the key of most watch lists.

    It is a tuple because tuples are hashed and compared in C.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(entries: Iterable[tuple[TopicPartition, T]]) -> dict[str, list[tuple[int, T]]]:
    """Return what belongs to each topic, with the partition numbers, in the order of the entries."""
    topics: dict[str, list[tuple[int, T]]] = {}
    for (topic, partition), entry in entries:
        topics.setdefault(topic, []).append((partition, entry))
    return topics
