"""The part of the controller's metadata that outlives the process."""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState, TopicConfig, TopicImage
from examples.broker.storage.checkpoint_file import CheckpointFile
from examples.broker.storage.data_directory import UnusableDirectory

FORMAT: Final = 1
# Producer ids are reserved in blocks, so that few of them cost a write. The size is KRaft's.
PRODUCER_ID_BLOCK: Final = 1000


class StoredMetadata:
    """The topics with the state of each partition, the id of the cluster, and the producer ids.

    With a directory they are in a file, as JSON; Kafka has a log for them (``__cluster_metadata``). A change
    replaces the file, in O(partitions of the cluster). If that fails, the method raises ApiError
    KAFKA_STORAGE_ERROR, and nothing has changed.
    """

    def __init__(self, directory: Path | None = None) -> None:
        """Read the metadata, or begin those of a new cluster.

        Raises UnusableDirectory when the directory has something else.
        """
        self._file = None if directory is None else CheckpointFile(directory / "metadata.json")
        self.cluster_id = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        self.topics: Mapping[str, TopicImage] = {}
        self._next_producer_id = 0
        if self._file is not None:
            self._read(self._file)
        # The ids below may be in use.
        self._reserved = self._next_producer_id

    def __repr__(self) -> str:
        return f"<StoredMetadata of {len(self.topics)} topics in {self._file or 'memory'}>"

    def put_topics(self, topics: Mapping[str, TopicImage]) -> None:
        """Replace all topics."""
        if topics != self.topics:
            self._write(topics, self._reserved)
            self.topics = topics

    def next_producer_id(self) -> int:
        """Return an id that was never returned before, not even by an earlier process."""
        producer_id = self._next_producer_id
        if producer_id == self._reserved:
            self._write(self.topics, producer_id + PRODUCER_ID_BLOCK)
            self._reserved += PRODUCER_ID_BLOCK
        self._next_producer_id += 1
        return producer_id

    def _write(self, topics: Mapping[str, TopicImage], reserved: int) -> None:
        if self._file is None:
            return
        stored = {
            "format": FORMAT,
            "cluster_id": self.cluster_id,
            "next_producer_id": reserved,
            "topics": {name: _encode(topic) for name, topic in topics.items()},
        }
        try:
            self._file.write(json.dumps(stored))
        except OSError as error:
            raise ApiError(ErrorCode.kafka_storage_error, f"the metadata cannot change: {error}") from error

    def _read(self, file: CheckpointFile) -> None:
        directory = file.path.parent
        try:
            text = file.read()
            # A name with a dot is the lock, or a file that was about to replace another one.
            others = [path.name for path in directory.iterdir() if not path.name.startswith(".")]
        except OSError as error:
            raise UnusableDirectory(f"{error}; choose another --data") from error
        if text is None:
            if others:
                raise UnusableDirectory(
                    f"{directory} has files of something else, such as {others[0]}; choose an empty --data"
                )
            return
        try:
            stored = json.loads(text)
            if stored["format"] == FORMAT:
                self.cluster_id = stored["cluster_id"]
                self._next_producer_id = stored["next_producer_id"]
                self.topics = {name: _decode(name, topic) for name, topic in stored["topics"].items()}
                return
            fault = f"has format {stored['format']!r}, but this program reads format {FORMAT}"
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            fault = f"is damaged: {error!r}"
        raise UnusableDirectory(f"{file.path} {fault}; choose another --data")


def _encode(topic: TopicImage) -> Mapping[str, Any]:
    return {
        "topic_id": str(topic.topic_id),
        "config": asdict(topic.config),
        "partitions": [asdict(state) for state in topic.partitions],
    }


def _decode(name: str, topic: Mapping[str, Any]) -> TopicImage:
    partitions = tuple(
        PartitionState(**{**state, "replicas": tuple(state["replicas"]), "in_sync": tuple(state["in_sync"])})
        for state in topic["partitions"]
    )
    return TopicImage(name, UUID(topic["topic_id"]), partitions, TopicConfig(**topic["config"]))
