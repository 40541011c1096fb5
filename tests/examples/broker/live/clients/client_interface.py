"""What the tests want of a client, whichever it is: each has an adapter with this face."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from examples.broker.errors import ErrorCode

# As Kafka numbers them in the attributes of a batch.
CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

# Larger than any broker of these tests takes, so that it is the broker that refuses.
MAX_REQUEST_SIZE: Final = 4 << 20

# How long a single call of a client may take, in seconds.
PATIENCE: Final = 30.0


class Refused(Exception):
    """Raised when a broker has answered with an error."""

    def __init__(self, code: int) -> None:
        self.code = ErrorCode(code)
        super().__init__(self.code.name)


@dataclass(frozen=True, slots=True)
class Record:
    """``timestamp`` is in milliseconds since the epoch."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """``acks`` as in the protocol: 0, 1, or -1 for all. ``linger``, in seconds, gathers a batch."""

    acks: int = -1
    compression: str = "none"
    idempotent: bool = False
    linger: float = 0.0


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """``fetch_max_wait`` is in seconds. With ``group_id``, topics may be subscribed to."""

    fetch_min_bytes: int = 1
    fetch_max_wait: float = 0.5
    group_id: str | None = None


class Producer(Protocol):
    def send(self, topic: str, *records: Record) -> list[int]:
        """The offsets that partition 0 has given them, once all are acknowledged; Refused with an error.

        With acks=0 there is nothing to wait for, and the offsets mean nothing.
        """
        ...


class Consumer(Protocol):
    def read(self, topic: str, offset: int) -> None:
        """Begin with the record at ``offset`` of partition 0."""
        ...

    def subscribe(self, topic: str) -> None:
        """As a member of the group."""
        ...

    def take(self, within: float) -> tuple[int, Record] | None:
        """The next record and its offset, or None if none comes ``within`` seconds."""
        ...

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        """Of the first record of partition 0 that is at least as late."""
        ...

    def bounds(self, topic: str) -> tuple[int, int]:
        """The first offset of partition 0, and the one that the next record gets."""
        ...


class Admin(Protocol):
    """Refused is raised by every one of these when the broker answers with an error."""

    def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def topics(self) -> set[str]: ...

    def topic_configs(self, topic: str) -> Mapping[str, str]: ...

    def delete_records(self, topic: str, before_offset: int) -> int:
        """Of partition 0; the low watermark afterwards."""
        ...

    def brokers(self) -> set[tuple[int, str, int]]:
        """Id, host and port of each."""
        ...

    def groups(self) -> set[str]: ...

    def group(self, group_id: str) -> tuple[str, int]:
        """The group's state, as the protocol calls it, and how many members it has."""
        ...


@runtime_checkable
class ElectsLeaders(Protocol):
    """An Admin that can, which not every client's does."""

    def elect_preferred(self, topic: str) -> None:
        """Give partition 0 its preferred leader."""
        ...


class Client(Protocol):
    @property
    def name(self) -> str: ...

    def producer(
        self, bootstrap_servers: str, settings: ProducerSettings
    ) -> AbstractContextManager[Producer]: ...

    def consumer(
        self, bootstrap_servers: str, settings: ConsumerSettings
    ) -> AbstractContextManager[Consumer]: ...

    def admin(self, bootstrap_servers: str) -> AbstractContextManager[Admin]: ...


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
