"""The interface that the tests use. Each client has an adapter for it."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from examples.broker.errors import ErrorCode

# The codecs with their numbers in the attributes of a batch.
CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

# Larger than the limit of the brokers, so that the broker refuses a request and not the client.
MAX_REQUEST_SIZE: Final = 4 << 20

# The longest time in seconds of a single call of a client.
PATIENCE: Final = 30.0


class Refused(Exception):
    """Raised when a broker has answered with an error."""

    def __init__(self, code: int) -> None:
        self.code = ErrorCode(code)
        super().__init__(self.code.name.upper())


@dataclass(frozen=True, slots=True)
class Record:
    """``timestamp`` is in milliseconds since the epoch."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """``acks`` is 0, 1, or -1 for all. A producer waits ``linger`` seconds for more records of a batch."""

    acks: int = -1
    compression: str = "none"
    idempotent: bool = False
    linger: float = 0.0


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """``fetch_max_wait`` is in seconds. With a ``group_id`` the consumer may subscribe to topics."""

    fetch_min_bytes: int = 1
    fetch_max_wait: float = 0.5
    group_id: str | None = None


class Producer(Protocol):
    def send(self, topic: str, *records: Record) -> list[int]:
        """Send the records to partition 0; return their offsets once all are acknowledged.

        Raises Refused when the broker answers with an error. With acks=0 the offsets have no meaning.
        """
        ...


class Consumer(Protocol):
    def read(self, topic: str, offset: int) -> None:
        """Read partition 0 from ``offset`` on."""
        ...

    def subscribe(self, topic: str) -> None:
        """Subscribe to the topic as a member of the group."""
        ...

    def take(self, within: float) -> tuple[int, Record] | None:
        """Return the next record and its offset, or None if none comes ``within`` seconds."""
        ...

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        """Return the offset of the first record of partition 0 at or after the timestamp."""
        ...

    def bounds(self, topic: str) -> tuple[int, int]:
        """Return the first offset of partition 0, and the offset of the next record."""
        ...


class Admin(Protocol):
    """Every method raises Refused when the broker answers with an error."""

    def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def topics(self) -> set[str]: ...

    def topic_configs(self, topic: str) -> Mapping[str, str]: ...

    def add_partitions(self, topic: str, total: int) -> None: ...

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """Change settings of the topic. With aiokafka, all others have their defaults again."""
        ...

    def delete_records(self, topic: str, before_offset: int) -> int:
        """Delete records of partition 0; return its low watermark."""
        ...

    def brokers(self) -> set[tuple[int, str, int]]:
        """Return the id, host and port of each broker."""
        ...

    def groups(self) -> set[str]: ...

    def group(self, group_id: str) -> tuple[str, int]:
        """Return the group's state, with the protocol's name, and the number of its members."""
        ...


@runtime_checkable
class ElectsLeaders(Protocol):
    """An Admin that can elect leaders. Not every client can."""

    def elect_preferred(self, topic: str) -> None:
        """Elect the preferred leader of partition 0."""
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
