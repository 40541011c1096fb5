"""The records per second that all replicas acknowledge."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table
from benchmarks.harness.setting import Setting
from benchmarks.suites.broker.clusters import PATIENCE, TOPIC, cases, running

# Bytes of a record.
RECORD_BYTES = (100, 1000)
# Records between two polls for delivery reports.
_BATCH = 1000


def throughput(_: Setting, sizes: Sequence[int]) -> Benchmark:
    """The first of `sizes` is the number of records."""
    records = sizes[0]
    return Benchmark(
        name="throughput",
        summary="how much is produced with acks=all",
        cases=tuple(
            case
            for length in RECORD_BYTES
            for case in cases(
                f"records of {length:,} bytes", partial(measure, records=records, length=length)
            )
        ),
        tables=(
            Table(
                "Produced with acks=all, linger.ms=5",
                (Column("records_per_second", "records/s"), Column("mb_per_second", "MB/s")),
                f"{records:,} records to a topic of four partitions with three replicas each, until the "
                "last is acknowledged; MB of a million bytes. The mock cluster replicates nothing: its row "
                "is about as much as this client can produce.",
            ),
        ),
        time_limit=600.0,
    )


def measure(name: str, records: int, length: int) -> Sample:
    """Per second. Raises RuntimeError when a record is not acknowledged."""
    failures: list[KafkaError | None] = []

    def failed(error: KafkaError | None, _: Message) -> None:
        failures.append(error)

    with running(name) as cluster:
        # Without delivery.report.only.error there would be a call back into Python for each record.
        settings = {"acks": "all", "linger.ms": 5, "delivery.report.only.error": True}
        producer = Producer({**cluster.client_settings, **settings})
        value = os.urandom(length)
        # The first record makes the connections.
        producer.produce(TOPIC, value, on_delivery=failed)
        producer.flush(PATIENCE)
        began = time.perf_counter()
        for start in range(0, records, _BATCH):
            for _ in range(min(_BATCH, records - start)):
                _produce(producer, value, failed)
            producer.poll(0)
        left = producer.flush(PATIENCE)
        took = time.perf_counter() - began
    if left or failures:
        counts = f"{left} records of {records} have no answer, {len(failures)} failed"
        raise RuntimeError(f"{counts}: {failures[:1]}")
    return {"records_per_second": records / took, "mb_per_second": records * length / took / 1e6}


def _produce(producer: Producer, value: bytes, failed: Callable[[KafkaError | None, Message], None]) -> None:
    """Produce the record as soon as there is room for it."""
    while True:
        try:
            producer.produce(TOPIC, value, on_delivery=failed)
        except BufferError:
            producer.poll(0.001)
        else:
            return
