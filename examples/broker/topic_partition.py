"""What a partition is called."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """The key of most watch lists; a tuple, because hashing and comparing tuples runs in C."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
