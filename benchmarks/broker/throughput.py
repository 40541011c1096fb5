"""How many records a second are acknowledged by all replicas."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from benchmarks.broker.clusters import CLUSTERS, PATIENCE, TOPIC, Cluster
from benchmarks.question import Column, Contender, Question, Sample, Table

# Bytes of a record.
SIZES = (100, 1000)
# Records between two looks at what has become of the others.
_STRETCH = 1000


def throughput(records: int) -> Question:
    """The question, of so many records."""
    return Question(
        name="throughput",
        summary="how much is produced with acks=all",
        contenders=tuple(
            Contender(f"records of {size:,} bytes", cluster.name, partial(measure, cluster, records, size))
            for size in SIZES
            for cluster in CLUSTERS
        ),
        tables=(
            Table(
                title="Produced with acks=all, linger.ms=5",
                columns=(Column("records_per_second", "records/s"), Column("mb_per_second", "MB/s")),
                note=f"{records:,} records to a topic of four partitions with three replicas each, until the "
                "last is acknowledged; MB of a million bytes. The mock cluster replicates nothing: its row "
                "is about as much as this client can produce.",
            ),
        ),
        patience=600.0,
    )


def measure(cluster: Cluster, records: int, size: int) -> Sample:
    """Per second; RuntimeError when a record is not acknowledged."""
    failures: list[KafkaError] = []

    def failed(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    with cluster.running() as running:
        running.leader()
        producer = Producer(
            {
                **running.client_settings,
                "acks": "all",
                "linger.ms": 5,
                # Else there would be a call back into Python for each record.
                "delivery.report.only.error": True,
            }
        )
        value = os.urandom(size)
        # The first makes the connections.
        producer.produce(TOPIC, value, on_delivery=failed)
        producer.flush(PATIENCE)
        began = time.perf_counter()
        for start in range(0, records, _STRETCH):
            for _ in range(min(_STRETCH, records - start)):
                _produce(producer, value, failed)
            producer.poll(0)
        left = producer.flush(PATIENCE)
        took = time.perf_counter() - began
    if left or failures:
        raise RuntimeError(
            f"{left} records of {records} have no answer, {len(failures)} failed: {failures[:1]}"
        )
    return {"records_per_second": records / took, "mb_per_second": records * size / took / 1e6}


def _produce(producer: Producer, value: bytes, failed: Callable[[KafkaError | None, Message], None]) -> None:
    """As soon as there is room."""
    while True:
        try:
            producer.produce(TOPIC, value, on_delivery=failed)
        except BufferError:
            producer.poll(0.001)
        else:
            return
