"""The part of a replica that outlives its broker."""

from uuid import UUID

from examples.broker.storage.log import PartitionLog
from examples.broker.storage.partition_directory import HIGH_WATERMARK, PartitionDirectory


class StoredPartition:
    """The log and the high watermark that a broker finds on its disk after a restart.

    ``topic_id`` distinguishes a topic from an earlier one of the same name. With a directory, the log is in
    its files, and ``checkpoint`` puts the high watermark there.
    """

    def __init__(
        self, topic_id: UUID, segment_bytes: int, directory: PartitionDirectory | None = None
    ) -> None:
        self.topic_id = topic_id
        self.log = PartitionLog(segment_bytes, directory)
        self.high_watermark = 0 if directory is None else directory.load(HIGH_WATERMARK)
        self._directory = directory
        self._checkpointed = self.high_watermark

    def __repr__(self) -> str:
        return f"<StoredPartition {self.log!r} hw={self.high_watermark}>"

    def checkpoint(self) -> None:
        """Save the high watermark. Raises ApiError KAFKA_STORAGE_ERROR."""
        if self._directory is not None and self.high_watermark != self._checkpointed:
            self._directory.save(HIGH_WATERMARK, self.high_watermark)
            self._checkpointed = self.high_watermark

    def delete(self) -> None:
        """Remove the files. Raises ApiError KAFKA_STORAGE_ERROR."""
        if self._directory is not None:
            self._directory.delete()
