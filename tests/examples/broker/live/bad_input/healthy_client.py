"""A client that behaves correctly beside clients with bad input."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from tests.examples.broker.live.clients.client_interface import ConsumerSettings, Record
from tests.examples.broker.live.clients.confluent_client import Confluent, ConfluentProducer
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
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._stop = threading.Event()

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
        settings = {"linger.ms": 0, "error_cb": lambda error: self.errors.append(str(error))}
        with (
            ConfluentProducer.running(self._bootstrap_servers, settings) as producer,
            Confluent().consumer(self._bootstrap_servers, ConsumerSettings()) as consumer,
        ):
            consumer.read(self._topic, 0)
            while not self._stop.wait(_PAUSE) and not self.errors:
                sent = Record(b"%d" % self.seen)
                producer.send(self._topic, sent)
                taken = consumer.take(PATIENCE)
                if taken != (self.seen, sent):
                    self.errors.append(f"where {sent} should be is {taken}")
                self.seen += 1
