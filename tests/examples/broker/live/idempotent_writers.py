"""Idempotent producers of each client that write numbers, and record which of them are acknowledged."""

from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import Self

from tests.examples.broker.live.clients.client_interface import (
    Producer,
    ProducerSettings,
    Record,
)
from tests.examples.broker.live.clients.python_clients import Client


class Writer:
    """Writes numbers to the partitions of one topic with acks=all.

    ``acknowledged`` has the offset of each number by partition, or None when the client does not know it.
    ``failed`` describes the errors of the others.
    """

    def __init__(self, client: Client, producer: Producer, topic: str) -> None:
        self.begins_new_epochs = client.begins_new_epochs
        self.topic = topic
        self.sent = 0
        self.acknowledged: dict[int, dict[int, int | None]] = {}
        self.failed: list[str] = []
        self._name = client.name
        self._producer = producer
        self._begun: list[Future[int | None]] = []

    @classmethod
    @contextmanager
    def running(cls, client: Client, bootstrap_servers: str, topic: str) -> Iterator[Self]:
        settings = ProducerSettings(idempotent=True, linger=0.001, impatient=True)
        with client.producer(bootstrap_servers, settings) as producer:
            yield cls(client, producer, topic)

    def __repr__(self) -> str:
        return f"<Writer by {self._name} with {len(self)} of {self.sent} records acknowledged>"

    def __len__(self) -> int:
        """The number of acknowledged records."""
        # Copy it first, since another thread may add acknowledgements.
        return sum(map(len, list(self.acknowledged.values())))

    def send(self, partition: int, number: int) -> None:
        """Send a number. An exception of the client counts as a failure."""
        try:
            (begun,) = self._producer.begin(self.topic, Record(b"%d" % number), partition=partition)
        except Exception as error:
            self._fail(partition, number, error)
        else:
            begun.add_done_callback(partial(self._done, partition, number))
            self._begun.append(begun)
        self.sent += 1

    def flush(self) -> None:
        """Wait until every number is acknowledged or has failed."""
        unanswered = wait(self._begun, 1.5 * ProducerSettings.DELIVERY_TIMEOUT_MS / 1000).not_done
        if unanswered:
            self.failed.append(f"{len(unanswered)} records are neither acknowledged nor given up")

    def _done(self, partition: int, number: int, begun: Future[int | None]) -> None:
        error = begun.exception()
        if error is None:
            self.acknowledged.setdefault(partition, {})[number] = begun.result()
        else:
            self._fail(partition, number, error)

    def _fail(self, partition: int, number: int, error: object) -> None:
        self.failed.append(f"{number} to partition {partition}: {error!r}")
