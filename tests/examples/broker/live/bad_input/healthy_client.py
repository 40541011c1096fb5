"""A client that behaves correctly beside clients with bad input."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.examples.broker.live.live_cluster import PATIENCE, until

# Seconds between two records, to keep the load low.
_PAUSE: Final = 0.005


class HealthyClient:
    """Produces numbers with acks=all and consumes them, one after the other, on a thread of its own.

    ``errors`` has every error that it met, including a lost connection.
    """

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.errors: list[str] = []
        self.seen = 0
        self._topic = topic
        self._stop = threading.Event()
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "error_cb": lambda error: self.errors.append(str(error)),
            # error_cb has the same messages.
            "log_level": 0,
        }
        self._producer = Producer({**settings, "linger.ms": 0})
        self._consumer = Consumer({**settings, "group.id": "none", "enable.auto.commit": False})

    @classmethod
    @contextmanager
    def running(cls, bootstrap_servers: str, topic: str) -> Iterator[Self]:
        healthy_client = cls(bootstrap_servers, topic)
        thread = threading.Thread(target=healthy_client._run)
        thread.start()
        try:
            yield healthy_client
        finally:
            healthy_client._stop.set()
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the client does not stop"

    def assert_undisturbed(self) -> None:
        """Wait until it has consumed a few more records. Raises AssertionError after any error."""
        enough = self.seen + 3
        until(lambda: self.seen >= enough or self.errors, explain=lambda: f"it has seen {self.seen}")
        assert not self.errors

    def _run(self) -> None:
        self._consumer.assign([TopicPartition(self._topic, 0, 0)])
        try:
            while not self._stop.wait(_PAUSE) and not self.errors:
                self._round_trip(str(self.seen).encode())
        finally:
            self._consumer.close()

    def _round_trip(self, value: bytes) -> None:
        self._producer.produce(self._topic, value, partition=0, on_delivery=self._delivered)
        self._producer.flush(PATIENCE)
        message = self._consumer.poll(PATIENCE)
        if message is None or message.error() is not None or message.value() != value:
            self.errors.append(f"where {value!r} should be is {message and message.value()!r}")
        self.seen += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(f"{message.value()!r} is not delivered: {error}")
