"""The replicas of a broker, which outlive it."""

from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from examples.broker.errors import ApiError
from examples.broker.storage.partition_directory import PartitionDirectory
from examples.broker.storage.replica import Replica
from examples.broker.topic_partition import TopicPartition


class Disk:
    """What a broker finds again after a restart (Kafka's LogManager).

    Without a directory it is in memory: it outlives the broker, but not the process. In the directory, each
    replica has a directory of its own, which is read when the broker first hosts the partition.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory
        self._partitions: dict[TopicPartition, Replica] = {}

    def __repr__(self) -> str:
        return f"<Disk of {len(self._partitions)} partitions in {self.directory or 'memory'}>"

    @property
    def topic_partitions(self) -> Set[TopicPartition]:
        """The partitions that were opened."""
        return self._partitions.keys()

    def open(self, topic_partition: TopicPartition, topic_id: UUID, segment_bytes: int) -> Replica:
        """Return the replica of a partition, which is empty if there is none of this topic.

        Raises OSError or ApiError KAFKA_STORAGE_ERROR when its files cannot be read.
        """
        stored = self._partitions.get(topic_partition)
        if stored is not None and stored.topic_id == topic_id:
            return stored
        self.delete(topic_partition)
        directory = None
        if self.directory is not None:
            directory = PartitionDirectory(self.directory / str(topic_partition), topic_id)
        stored = self._partitions[topic_partition] = Replica(topic_id, segment_bytes, directory)
        return stored

    def delete(self, topic_partition: TopicPartition) -> None:
        """Delete a replica that was opened. Raises ApiError KAFKA_STORAGE_ERROR."""
        stored = self._partitions.pop(topic_partition, None)
        if stored is not None:
            stored.delete()

    def retain(self, topic_ids: Set[UUID]) -> None:
        """Delete the replicas of all other topics, opened or not. Raises OSError or ApiError."""
        for topic_partition, stored in [*self._partitions.items()]:
            if stored.topic_id not in topic_ids:
                self.delete(topic_partition)
        if self.directory is not None:
            for directory in PartitionDirectory.all_in(self.directory):
                if directory.topic_id not in topic_ids:
                    directory.delete()

    def checkpoint(self) -> None:
        """Save the high watermarks that have moved."""
        for stored in self._partitions.values():
            # It is logged. An older high watermark is right, too, and a later checkpoint tries again.
            with suppress(ApiError):
                stored.checkpoint()
