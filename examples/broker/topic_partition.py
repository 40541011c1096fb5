"""The name of a partition."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A topic and a partition number, the key of most watch lists.

    It is a tuple because tuples are hashed and compared in C.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
