"""Idempotent producers of three clients, with one interface that records the acknowledgements."""

import gc
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, ClassVar, Self

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]  # it has no types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from confluent_kafka import KafkaError, KafkaException, Message, Producer

with warnings.catch_warnings():
    # On import it reads its schemas by a function that is deprecated in Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer  # type: ignore[import-untyped]  # it has no types
    from kafka.errors import KafkaTimeoutError  # type: ignore[import-untyped]  # it has no types

# Seconds after which a client gives up a record; far longer than any fault lasts, on a busy machine, too.
DELIVERY_TIMEOUT = 60.0
# Short times, so that a client soon notices a failed or a new leader.
RETRY_BACKOFF_MS = 20
METADATA_MAX_AGE_MS = 200
# librdkafka builds no produce request while another request waits to be sent on the connection. If it
# asked for metadata faster than a busy machine answers, it would send no records.
LIBRDKAFKA_METADATA_MAX_AGE_MS = 5000
LIBRDKAFKA_LEADER_QUERY_MS = 250
REQUEST_TIMEOUT_MS = 1000
# Small batches, so that many are in flight when a fault comes.
BATCH_BYTES = 512


class Writer(ABC):
    """Writes numbers to the partitions of one topic with acks=all.

    ``acknowledged`` has the offset of each number by partition, or None when the client does not know it.
    ``failed`` describes the errors of the others. ``begins_new_epochs`` says whether the client begins a new
    producer epoch after an error, and sends again what is not acknowledged.
    """

    begins_new_epochs: ClassVar[bool] = False

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.sent = 0
        self.acknowledged: dict[int, dict[int, int | None]] = {}
        self.failed: list[str] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {len(self)} of {self.sent} records acknowledged>"

    def __len__(self) -> int:
        """The number of acknowledged records."""
        # Copy it first, since another thread may add acknowledgements.
        return sum(map(len, list(self.acknowledged.values())))

    @classmethod
    @abstractmethod
    def running(cls, bootstrap_servers: str, topic: str) -> AbstractContextManager[Self]: ...

    @abstractmethod
    def flush(self) -> None:
        """Wait until every number is acknowledged or has failed."""

    @abstractmethod
    def _send(self, partition: int, number: int) -> None: ...

    def send(self, partition: int, number: int) -> None:
        """Send a number. An exception of the client counts as a failure."""
        try:
            self._send(partition, number)
        except Exception as error:
            self._fail(partition, number, error)
        self.sent += 1

    def _acknowledge(self, partition: int, number: int, offset: int | None) -> None:
        self.acknowledged.setdefault(partition, {})[number] = offset

    def _fail(self, partition: int, number: int, error: object) -> None:
        self.failed.append(f"{number} to partition {partition}: {error!r}")


class ConfluentWriter(Writer):
    # After OUT_OF_ORDER_SEQUENCE_NUMBER for a batch whose predecessor failed (librdkafka#4953).
    begins_new_epochs = True

    def __init__(self, producer: Producer, topic: str) -> None:
        super().__init__(topic)
        self._producer = producer

    @classmethod
    @contextmanager
    def running(cls, bootstrap_servers: str, topic: str) -> Iterator[Self]:
        yield cls(
            Producer(
                {
                    "bootstrap.servers": bootstrap_servers,
                    "enable.idempotence": True,
                    "linger.ms": 1,
                    "batch.size": BATCH_BYTES,
                    "message.timeout.ms": int(DELIVERY_TIMEOUT * 1000),
                    "request.timeout.ms": REQUEST_TIMEOUT_MS,
                    "socket.timeout.ms": REQUEST_TIMEOUT_MS,
                    "retry.backoff.ms": RETRY_BACKOFF_MS,
                    "retry.backoff.max.ms": RETRY_BACKOFF_MS,
                    "reconnect.backoff.ms": RETRY_BACKOFF_MS,
                    "reconnect.backoff.max.ms": RETRY_BACKOFF_MS,
                    "topic.metadata.refresh.interval.ms": LIBRDKAFKA_METADATA_MAX_AGE_MS,
                    "topic.metadata.refresh.fast.interval.ms": LIBRDKAFKA_LEADER_QUERY_MS,
                    # librdkafka would report the injected faults on stderr.
                    "log_level": 0,
                }
            ),
            topic,
        )

    def flush(self) -> None:
        try:
            self._producer.flush(1.5 * DELIVERY_TIMEOUT)
        except (KafkaException, SystemError) as error:
            # A fatal error of the producer also ends its deliveries, as a SystemError.
            self.failed.append(repr(error))

    def _send(self, partition: int, number: int) -> None:
        self._producer.produce(
            self.topic,
            str(number),
            partition=partition,
            on_delivery=partial(self._delivered, partition, number),
        )
        self._producer.poll(0)

    def _delivered(self, partition: int, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._fail(partition, number, error)
        else:
            self._acknowledge(partition, number, message.offset())


class KafkaPythonWriter(Writer):
    def __init__(self, producer: Any, topic: str) -> None:
        super().__init__(topic)
        self._producer = producer

    @classmethod
    @contextmanager
    def running(cls, bootstrap_servers: str, topic: str) -> Iterator[Self]:
        with (
            _sockets_left_open(),
            _closing(
                KafkaProducer(
                    bootstrap_servers=bootstrap_servers.split(","),
                    enable_idempotence=True,
                    linger_ms=1,
                    batch_size=BATCH_BYTES,
                    delivery_timeout_ms=int(DELIVERY_TIMEOUT * 1000),
                    request_timeout_ms=REQUEST_TIMEOUT_MS,
                    retry_backoff_ms=RETRY_BACKOFF_MS,
                    reconnect_backoff_ms=RETRY_BACKOFF_MS,
                    reconnect_backoff_max_ms=RETRY_BACKOFF_MS,
                    metadata_max_age_ms=METADATA_MAX_AGE_MS,
                )
            ) as producer,
        ):
            yield cls(producer, topic)

    def flush(self) -> None:
        try:
            self._producer.flush(1.5 * DELIVERY_TIMEOUT)
        except KafkaTimeoutError as error:
            self.failed.append(repr(error))

    def _send(self, partition_: int, number: int) -> None:
        sent = self._producer.send(self.topic, b"%d" % number, partition=partition_)
        sent.add_callback(lambda record: self._acknowledge(partition_, number, record.offset))
        sent.add_errback(partial(self._fail, partition_, number))


class AiokafkaWriter(Writer):
    """A writer whose event loop runs in its own thread."""

    def __init__(self, producer: Any, portal: BlockingPortal, topic: str) -> None:
        super().__init__(topic)
        self._producer = producer
        self._portal = portal

    @classmethod
    @contextmanager
    def running(cls, bootstrap_servers: str, topic: str) -> Iterator[Self]:
        async def start() -> Any:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap_servers,
                enable_idempotence=True,
                linger_ms=1,
                max_batch_size=BATCH_BYTES,
                request_timeout_ms=int(DELIVERY_TIMEOUT * 1000),
                retry_backoff_ms=RETRY_BACKOFF_MS,
                metadata_max_age_ms=METADATA_MAX_AGE_MS,
            )
            await producer.start()
            return producer

        with start_blocking_portal() as portal:
            producer = portal.call(start)
            try:
                yield cls(producer, portal, topic)
            finally:
                portal.call(producer.stop)

    def flush(self) -> None:
        self._portal.call(self._producer.flush)

    def _send(self, partition: int, number: int) -> None:
        self._portal.call(self._send_here, partition, number)

    async def _send_here(self, partition: int, number: int) -> None:
        sent = await self._producer.send(self.topic, b"%d" % number, partition=partition)
        sent.add_done_callback(partial(self._done, partition, number))

    def _done(self, partition: int, number: int, sent: Any) -> None:
        error = sent.exception()
        if error is not None:
            self._fail(partition, number, error)
        else:
            self._acknowledge(partition, number, sent.result().offset)


@contextmanager
def _closing(producer: Any) -> Iterator[Any]:
    """Close a producer of kafka-python, which would wait for its records without end."""
    try:
        yield producer
    finally:
        producer.close(DELIVERY_TIMEOUT)


@contextmanager
def _sockets_left_open() -> Iterator[None]:
    """Ignore the sockets that kafka-python does not close after a failed connect."""
    logger = logging.getLogger("kafka")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", r"unclosed <socket\.socket .* laddr=\('0\.0\.0\.0'", ResourceWarning
        )
        try:
            yield
        finally:
            gc.collect()
            logger.setLevel(level)
