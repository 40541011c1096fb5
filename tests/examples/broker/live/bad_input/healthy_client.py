"""A client that behaves, while others do not."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.examples.broker.live.live_cluster import PATIENCE, until

# Seconds between a record and the next, lest it keep the machine busy.
_PAUSE: Final = 0.005


class HealthyClient:
    """Produces numbers with acks=all and consumes them, one after the other, on a thread of its own.

    ``complaints`` has whatever it was told that was not as it should be, a lost connection included.
    """

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.complaints: list[str] = []
        self.seen = 0
        self._topic = topic
        self._stop = threading.Event()
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "error_cb": lambda error: self.complaints.append(str(error)),
            # Said by way of error_cb already.
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
            thread.join()

    def assert_undisturbed(self) -> None:
        """Return once it has seen a few more records. AssertionError if it had any trouble up to then."""
        enough = self.seen + 3
        until(lambda: self.seen >= enough or self.complaints, explain=lambda: f"it has seen {self.seen}")
        assert not self.complaints

    def _run(self) -> None:
        self._consumer.assign([TopicPartition(self._topic, 0, 0)])
        try:
            while not self._stop.wait(_PAUSE) and not self.complaints:
                self._round_trip(str(self.seen).encode())
        finally:
            self._consumer.close()

    def _round_trip(self, value: bytes) -> None:
        self._producer.produce(self._topic, value, partition=0, on_delivery=self._delivered)
        self._producer.flush(PATIENCE)
        message = self._consumer.poll(PATIENCE)
        if message is None or message.error() is not None or message.value() != value:
            self.complaints.append(f"where {value!r} should be is {message and message.value()!r}")
        self.seen += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.complaints.append(f"{message.value()!r} is not delivered: {error}")
