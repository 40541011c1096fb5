"""The files of one replica."""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self
from uuid import UUID

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.checkpoint_file import CheckpointFile

LOG_START_OFFSET: Final = "log-start-offset"
HIGH_WATERMARK: Final = "high-watermark"
_TOPIC_ID: Final = "topic-id"
# Kafka's name of a segment: its base offset in 20 digits.
_SEGMENT: Final = re.compile(r"([0-9]{20})\.log")

logger = logging.getLogger(__name__)


class PartitionDirectory:
    """A directory with the segments of one replica, and with what they do not say of it.

    A segment is a file of batches, in the bytes that are on the wire. The topic id, the log start offset and
    the high watermark are files of one line. The first write makes the directory.

    As in Kafka by default, a write goes to the page cache and is not synced: it survives SIGKILL, but not a
    power cut. A file is open for one call only, so that the limit of open files does not limit the number of
    partitions. A method that fails raises ApiError KAFKA_STORAGE_ERROR; the first failure in a row is logged.
    """

    def __init__(self, path: Path, topic_id: UUID) -> None:
        self.topic_id = topic_id
        self._path = path
        self._exists = os.path.exists(path / _TOPIC_ID)
        self._failing = False

    def __str__(self) -> str:
        return str(self._path)

    @classmethod
    def all_in(cls, path: Path) -> list[Self]:
        """Return the directories of all replicas below ``path``."""
        with _refusing():
            return [cls(file.parent, UUID(file.read_text())) for file in path.glob(f"*/{_TOPIC_ID}")]

    def base_offsets(self) -> list[int]:
        """Return the base offsets of the segments, in order."""
        with self._reporting():
            names = os.listdir(self._path) if self._path.exists() else []
        return sorted(int(found[1]) for found in map(_SEGMENT.fullmatch, names) if found)

    def read(self, base_offset: int) -> bytes:
        """Return a segment, which may end with a batch that is not whole."""
        with self._reporting():
            return self._segment(base_offset).read_bytes()

    def write(self, base_offset: int, data: bytes, position: int) -> None:
        """Write ``data`` at ``position`` of a segment, which is the end of its last batch.

        What a failed write has left there is cut off first, so that it is never taken for a batch.
        """
        # Only the first batch makes the file: another one would begin with a hole if somebody has removed it.
        flags = os.O_WRONLY | (0 if position else os.O_CREAT)
        with self._reporting():
            self._make()
            descriptor = os.open(self._segment(base_offset), flags, 0o666)
            try:
                if os.fstat(descriptor).st_size > position:
                    os.ftruncate(descriptor, position)
                left = memoryview(data)
                while left:
                    written = os.pwrite(descriptor, left, position)
                    left, position = left[written:], position + written
            finally:
                os.close(descriptor)

    def truncate(self, base_offset: int, size: int) -> None:
        """Cut a segment to ``size`` bytes."""
        with self._reporting():
            os.truncate(self._segment(base_offset), size)

    def remove(self, base_offset: int) -> None:
        """Remove a segment, if it has a file."""
        with self._reporting():
            self._segment(base_offset).unlink(missing_ok=True)

    def load(self, name: str) -> int:
        """Return the offset that was saved under this name; 0 if there is none."""
        with self._reporting():
            return int(CheckpointFile(self._path / name).read() or 0)

    def save(self, name: str, offset: int) -> None:
        with self._reporting():
            self._make()
            CheckpointFile(self._path / name).write(str(offset))

    def delete(self) -> None:
        """Remove the directory."""
        if not self._exists:
            return
        with self._reporting():
            # The topic id goes last. As long as there is a segment, it says whose that is.
            for path in sorted(self._path.iterdir(), key=lambda path: path.name == _TOPIC_ID):
                path.unlink()
            self._path.rmdir()
        self._exists = False

    def _make(self) -> None:
        if not self._exists:
            self._path.mkdir(parents=True, exist_ok=True)
            CheckpointFile(self._path / _TOPIC_ID).write(str(self.topic_id))
            self._exists = True

    def _segment(self, base_offset: int) -> Path:
        return self._path / f"{base_offset:020d}.log"

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            with _refusing():
                yield
        except ApiError as error:
            if not self._failing:
                logger.error("%s cannot be used: %s", self._path, error.__cause__)
            self._failing = True
            raise
        self._failing = False


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
