"""Members of consumer groups by three clients, with one interface."""

import asyncio
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]  # has no types
from aiokafka import ConsumerRebalanceListener as AiokafkaListener
from confluent_kafka import Consumer, KafkaException, TopicPartition

with warnings.catch_warnings():
    # kafka-python loads its schemas by a function that is deprecated in Python 3.11 and 3.12, not in 3.13.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import ConsumerRebalanceListener as KafkaPythonListener  # type: ignore[import-untyped]  # has no types
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import (  # type: ignore[import-untyped]  # has no types
        CooperativeStickyAssignor,
    )
    from kafka.coordinator.assignors.range import (  # type: ignore[import-untyped]  # has no types
        RangePartitionAssignor,
    )

# Milliseconds. Short, so that a member soon notices other work.
POLL_MS: Final = 20
# kafka-python joins again when a join is answered between two polls, so a poll has to be long.
KAFKA_PYTHON_POLL_MS: Final = 500
HEARTBEAT_INTERVAL_MS: Final = 100
BACKOFF_MS: Final = 50
METADATA_MAX_AGE_MS: Final = 500
REBALANCE_TIMEOUT_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """The settings of a member. ``session_timeout`` is in seconds, ``name`` is the client id.

    ``poll_ms`` is the longest wait of a fetch and, except for kafka-python, of a poll.
    """

    client: str
    bootstrap_servers: str
    group_id: str
    topic: str
    name: str
    session_timeout: float
    instance_id: str | None = None
    cooperative: bool = False
    poll_ms: int = POLL_MS

    @property
    def session_timeout_ms(self) -> int:
        return round(self.session_timeout * 1000)


class Listener(Protocol):
    """Is called with revoked partitions before others get them, and with newly assigned ones."""

    def assigned(self, partitions: frozenset[int]) -> None: ...

    def revoked(self, partitions: frozenset[int]) -> None: ...


class ReadRecord(NamedTuple):
    partition: int
    offset: int
    value: bytes


class GroupConsumer(Protocol):
    """A subscribed consumer, which takes part in the group only while it is polled."""

    def poll(self) -> list[ReadRecord]:
        """Return the next records; an empty list after a short wait."""
        ...

    def commit(self) -> None:
        """Commit the offsets of all records read, in the partitions that it still has."""
        ...

    def close(self) -> None: ...


class ConfluentConsumer:
    def __init__(self, settings: MemberSettings, listener: Listener) -> None:
        self._poll_ms = settings.poll_ms
        config: dict[str, str | int | float | bool | None] = {
            "bootstrap.servers": settings.bootstrap_servers,
            "client.id": settings.name,
            "group.id": settings.group_id,
            "partition.assignment.strategy": "cooperative-sticky" if settings.cooperative else "range",
            "session.timeout.ms": settings.session_timeout_ms,
            "max.poll.interval.ms": max(settings.session_timeout_ms, REBALANCE_TIMEOUT_MS),
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": settings.poll_ms,
            "reconnect.backoff.max.ms": BACKOFF_MS,
            "reconnect.backoff.ms": BACKOFF_MS,
            "topic.metadata.refresh.interval.ms": METADATA_MAX_AGE_MS,
            "log_level": 0,
        }
        if settings.instance_id is not None:
            config["group.instance.id"] = settings.instance_id
        self._consumer = Consumer(config)

        def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
            listener.revoked(_indexes(partitions))

        self._consumer.subscribe(
            [settings.topic],
            on_assign=lambda _, partitions: listener.assigned(_indexes(partitions)),
            on_revoke=revoked,
            on_lost=revoked,
        )

    def poll(self) -> list[ReadRecord]:
        return [_record(message) for message in self._consumer.consume(100, self._poll_ms / 1000)]

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


class AiokafkaConsumer:
    """Its event loop runs only within the calls, which follow each other at once."""

    def __init__(self, settings: MemberSettings, listener: Listener) -> None:
        self._poll_ms = settings.poll_ms
        self._runner = asyncio.Runner()
        self._consumer = self._runner.run(self._start(settings, listener))

    async def _start(self, settings: MemberSettings, listener: Listener) -> Any:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap_servers,
            client_id=settings.name,
            group_id=settings.group_id,
            group_instance_id=settings.instance_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=settings.poll_ms,
            retry_backoff_ms=BACKOFF_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        consumer.subscribe([settings.topic], listener=_aiokafka_listener(listener))
        await consumer.start()
        return consumer

    def poll(self) -> list[ReadRecord]:
        return _records(self._runner.run(self._consumer.getmany(timeout_ms=self._poll_ms)))

    def commit(self) -> None:
        self._runner.run(self._consumer.commit())

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()


class KafkaPythonConsumer:
    def __init__(self, settings: MemberSettings, listener: Listener) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=settings.bootstrap_servers.split(","),
            client_id=settings.name,
            group_id=settings.group_id,
            group_instance_id=settings.instance_id,
            partition_assignment_strategy=[
                CooperativeStickyAssignor if settings.cooperative else RangePartitionAssignor
            ],
            session_timeout_ms=settings.session_timeout_ms,
            max_poll_interval_ms=REBALANCE_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=settings.poll_ms,
            retry_backoff_ms=BACKOFF_MS,
            reconnect_backoff_ms=BACKOFF_MS,
            reconnect_backoff_max_ms=BACKOFF_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        self._consumer.subscribe([settings.topic], listener=_kafka_python_listener(listener))

    def poll(self) -> list[ReadRecord]:
        return _records(self._consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS))

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()


CONSUMERS: Final[Mapping[str, Callable[[MemberSettings, Listener], GroupConsumer]]] = {
    "confluent-kafka": ConfluentConsumer,
    "aiokafka": AiokafkaConsumer,
    "kafka-python": KafkaPythonConsumer,
}


def _aiokafka_listener(listener: Listener) -> Any:
    class Adapter(AiokafkaListener):  # type: ignore[misc]  # has no types
        async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            listener.assigned(_indexes(assigned))

        async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            listener.revoked(_indexes(revoked))

    return Adapter()


def _kafka_python_listener(listener: Listener) -> Any:
    class Adapter(KafkaPythonListener):  # type: ignore[misc]  # has no types
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            listener.assigned(_indexes(assigned))

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            listener.revoked(_indexes(revoked))

    return Adapter()


def _indexes(partitions: Iterable[Any]) -> frozenset[int]:
    return frozenset(partition.partition for partition in partitions)


def _record(message: Any) -> ReadRecord:
    if message.error() is not None:
        raise KafkaException(message.error())
    return ReadRecord(message.partition(), message.offset(), message.value())


def _records(polled: Mapping[Any, Iterable[Any]]) -> list[ReadRecord]:
    return [
        ReadRecord(record.partition, record.offset, record.value)
        for records in polled.values()
        for record in records
    ]
