"""What all clients have in common: settings, records, and the calls of producers and consumers."""

from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Protocol

from examples.broker.errors import ErrorCode

# The codecs with their numbers in the attributes of a batch.
CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

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


class ReadRecord(NamedTuple):
    partition: int
    offset: int
    record: Record


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """``acks`` is 0, 1, or -1 for all. A producer waits ``linger`` seconds for more records of a batch.

    An ``impatient`` producer soon notices a failed or a new leader. Its batches are small, so that many are
    in flight when a fault comes. It gives up a record long after any fault has ended.
    """

    acks: int = -1
    compression: str = "none"
    idempotent: bool = False
    linger: float = 0.0
    impatient: bool = False

    BATCH_BYTES: ClassVar = 512
    RETRY_BACKOFF_MS: ClassVar = 20
    REQUEST_TIMEOUT_MS: ClassVar = 1000
    DELIVERY_TIMEOUT_MS: ClassVar = 60_000
    # Larger than the limit of the brokers, so that the broker refuses a request and not the client.
    MAX_REQUEST_SIZE: ClassVar = 4 << 20


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Times are in seconds. With a ``group_id`` the consumer may subscribe to topics.

    It soon notices a rebalance or another coordinator.
    """

    fetch_min_bytes: int = 1
    fetch_max_wait: float = 0.5
    group_id: str | None = None
    client_id: str = "consumer"
    session_timeout: float = 30.0
    instance_id: str | None = None
    cooperative: bool = False

    HEARTBEAT_INTERVAL_MS: ClassVar = 100
    BACKOFF_MS: ClassVar = 50
    METADATA_MAX_AGE_MS: ClassVar = 500
    REBALANCE_TIMEOUT_MS: ClassVar = 60_000


class Listener(Protocol):
    """Is called with revoked partitions before others get them, and with newly assigned ones."""

    def assigned(self, partitions: frozenset[int]) -> None: ...

    def revoked(self, partitions: frozenset[int]) -> None: ...


class Producer(ABC):
    @abstractmethod
    def begin(self, topic: str, *records: Record, partition: int = 0) -> list[Future[int | None]]:
        """Begin to send the records.

        Each future gets the offset of its record once the record is acknowledged, or None where the client
        does not know the offset. It gets Refused when the broker answers with an error.
        """

    def send(self, topic: str, *records: Record) -> list[int]:
        """Send the records to partition 0; return their offsets once all are acknowledged.

        Raises Refused when the broker answers with an error. With acks=0 the offsets have no meaning.
        """
        offsets = [sent.result(PATIENCE) for sent in self.begin(topic, *records)]
        return [-1 if offset is None else offset for offset in offsets]


class Consumer(ABC):
    """A subscribed consumer takes part in its group only while it is polled."""

    def __init__(self) -> None:
        self._polled: deque[ReadRecord] = deque()

    @abstractmethod
    def read(self, topic: str, offset: int) -> None:
        """Read partition 0 from ``offset`` on."""

    @abstractmethod
    def subscribe(self, topic: str, listener: Listener | None = None) -> None:
        """Subscribe to the topic as a member of the group."""

    @abstractmethod
    def poll(self, within: float) -> list[ReadRecord]:
        """Return the next records; an empty list if none comes ``within`` seconds."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the offsets of all polled records, in the partitions that it still has."""

    @abstractmethod
    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        """Return the offset of the first record of partition 0 at or after the timestamp."""

    @abstractmethod
    def bounds(self, topic: str) -> tuple[int, int]:
        """Return the first offset of partition 0, and the offset of the next record."""

    def take(self, within: float) -> tuple[int, Record] | None:
        """Return the next record and its offset, or None if none comes ``within`` seconds."""
        if not self._polled:
            self._polled.extend(self.poll(within))
        return self._polled.popleft()[1:] if self._polled else None


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
