"""Brokers that are a process with a directory, and what its files have."""

import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kio.records.readers import read_batch

from examples.broker.controller.stored_metadata import StoredMetadata
from examples.broker.storage.disk import Disk
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition
from examples.free_ports import free_ports
from tests.examples.broker.live.idempotent_writers import Writer
from tests.examples.broker.live.live_cluster import PATIENCE
from tests.examples.broker.live.stored_once import find_faults

REPOSITORY = Path(__file__).parents[4]
TOPIC = "events"
PARTITIONS = 3


class BrokersProcess:
    """``python -m examples.broker --data``, always at the same ports."""

    def __init__(self, data: Path, log: Path) -> None:
        self._log = log
        first = free_ports(3)
        self.bootstrap_servers = ",".join(f"127.0.0.1:{port}" for port in range(first, first + 3))
        self._command = [
            *(sys.executable, "-m", "examples.broker", "--data", str(data), "--port", str(first)),
            *("--broker-session-timeout", "1", "--group-initial-rebalance-delay", "0"),
            *("--group-min-session-timeout", "1", "--log-level", "warning"),
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        self.start()
        try:
            yield
        finally:
            self.kill()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd=REPOSITORY
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith(b"bootstrap.servers="), self._log.read_text()

    def kill(self) -> None:
        with self._process as process:
            process.send_signal(signal.SIGKILL)


def create_topic(bootstrap_servers: str) -> None:
    """Create ``TOPIC`` with ``PARTITIONS`` partitions on all brokers."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(PATIENCE)


def values(batches: Iterable[RecordBatch]) -> dict[int, int]:
    """The numbers that are stored, by offset."""
    return {
        batch.base_offset + index: int(record.value or b"")
        for batch in batches
        for index, record in enumerate(read_batch(batch.data, 0)[0].records)
    }


def stored_faults(data: Path, writer: Writer) -> list[str]:
    """Return the faults of the leaders' files, when no process uses them."""
    topic = StoredMetadata(data).topics[TOPIC]
    faults: list[str] = []
    for partition, state in enumerate(topic.partitions):
        disk = Disk(data / f"broker-{state.leader}")
        log = disk.open(TopicPartition(TOPIC, partition), topic.topic_id, 1 << 20).log
        batches = list(log.batches())
        faults += find_faults(
            values(batches),
            batches,
            writer.acknowledged[partition],
            begins_new_epochs=writer.begins_new_epochs,
        )
    return faults
