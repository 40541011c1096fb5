"""What aiokafka and kafka-python have in common: the names of settings and of most calls of a consumer."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from aiokafka import (  # type: ignore[import-untyped]  # has no types
    ConsumerRebalanceListener as AiokafkaListener,
)
from kafka import (  # type: ignore[import-untyped]  # has no types
    ConsumerRebalanceListener as KafkaPythonListener,
)

from tests.examples.broker.live.clients.client_interface import (
    Consumer,
    ConsumerSettings,
    Listener,
    ProducerSettings,
    ReadRecord,
    Record,
    milliseconds,
)

# Milliseconds after which an impatient producer asks for the leaders again.
LEADERS_MAX_AGE_MS: Final = 200


def producer_keywords(bootstrap_servers: str, settings: ProducerSettings) -> dict[str, Any]:
    keywords: dict[str, Any] = {
        "bootstrap_servers": bootstrap_servers,
        "compression_type": None if settings.compression == "none" else settings.compression,
        "enable_idempotence": settings.idempotent,
        "linger_ms": milliseconds(settings.linger),
        "max_request_size": settings.MAX_REQUEST_SIZE,
    }
    if settings.impatient:
        keywords |= {"retry_backoff_ms": settings.RETRY_BACKOFF_MS, "metadata_max_age_ms": LEADERS_MAX_AGE_MS}
    return keywords


def consumer_keywords(bootstrap_servers: str, settings: ConsumerSettings) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap_servers,
        "client_id": settings.client_id,
        "group_id": settings.group_id,
        "group_instance_id": settings.instance_id,
        "session_timeout_ms": milliseconds(settings.session_timeout),
        "heartbeat_interval_ms": settings.HEARTBEAT_INTERVAL_MS,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "fetch_min_bytes": settings.fetch_min_bytes,
        "fetch_max_wait_ms": milliseconds(settings.fetch_max_wait),
        "retry_backoff_ms": settings.BACKOFF_MS,
        "metadata_max_age_ms": settings.METADATA_MAX_AGE_MS,
    }


class RebalanceListener(AiokafkaListener, KafkaPythonListener):  # type: ignore[misc]  # they have no types
    """Each of the two clients calls a listener of this class."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._listener.assigned(indexes(assigned))

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._listener.revoked(indexes(revoked))


def indexes(partitions: Iterable[Any]) -> frozenset[int]:
    return frozenset(partition.partition for partition in partitions)


class KeywordConsumer(Consumer):
    """A consumer of one of the two clients, whose methods are called by ``call``."""

    def __init__(self, consumer: Any, partition: Any, call: Callable[..., Any]) -> None:
        super().__init__()
        self._consumer = consumer
        self._partition = partition
        self._call = call

    def read(self, topic: str, offset: int) -> None:
        partition = self._partition(topic, 0)
        self._call(self._consumer.assign, [partition])
        self._call(self._consumer.seek, partition, offset)

    def subscribe(self, topic: str, listener: Listener | None = None) -> None:
        adapter = None if listener is None else RebalanceListener(listener)
        self._call(lambda: self._consumer.subscribe([topic], listener=adapter))

    def commit(self) -> None:
        self._call(self._consumer.commit)

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        partition = self._partition(topic, 0)
        found = self._call(self._consumer.offsets_for_times, {partition: timestamp})[partition]
        return None if found is None else found.offset

    def bounds(self, topic: str) -> tuple[int, int]:
        partition = self._partition(topic, 0)
        return (
            self._call(self._consumer.beginning_offsets, [partition])[partition],
            self._call(self._consumer.end_offsets, [partition])[partition],
        )


def read_records(polled: Mapping[Any, Iterable[Any]]) -> list[ReadRecord]:
    return [
        ReadRecord(
            taken.partition,
            taken.offset,
            Record(taken.value, taken.key, tuple(taken.headers), taken.timestamp),
        )
        for records in polled.values()
        for taken in records
    ]
