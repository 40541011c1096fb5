"""Records that are produced: how soon a waiting consumer has them, and how many a second."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table, percentile
from benchmarks.harness.setting import Setting
from benchmarks.suites.broker.clusters import PATIENCE, TOPIC, cases, running

# Milliseconds: the clients' default, and so short that continuous polling would do as well.
MAX_WAITS = (500, 5)
# Seconds in which a consumer that has a record asks for the next.
POLLING_AGAIN = 0.01
# Bytes of a record.
RECORD_BYTES = (100, 1000)
# Records between two polls for delivery reports.
BATCH = 1000


def wake(_: Setting, sizes: Sequence[int]) -> Benchmark:
    """The first of `sizes` is the number of records, one after the other."""
    wakes = sizes[0]
    return Benchmark(
        name="wake",
        summary="how long a waiting consumer waits for a record that is produced",
        cases=tuple(
            case
            for max_wait in MAX_WAITS
            for case in cases(
                f"fetch.wait.max.ms={max_wait}", partial(measure_wake, max_wait=max_wait, wakes=wakes)
            )
        ),
        tables=(
            Table(
                "From produce(), acks=all, to the consumer in a long poll: milliseconds",
                (Column("p50_ms", "p50"), Column("p99_ms", "p99")),
                f"{wakes:,} records, each at a random moment of the poll. The mock cluster wakes "
                "nobody: when fetch.wait.max.ms are over it answers, and the next fetch has the record.",
            ),
        ),
        time_limit=600.0,
    )


def measure_wake(name: str, max_wait: int, wakes: int) -> Sample:
    """Milliseconds. Raises RuntimeError when a record is lost."""
    latencies = []
    moments = random.Random(1)
    with running(name) as cluster:
        producer = Producer({**cluster.client_settings, "acks": "all", "linger.ms": 0})
        settings = {"group.id": "none", "enable.auto.commit": False, "fetch.wait.max.ms": max_wait}
        with closing(Consumer({**cluster.client_settings, **settings})) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            for number in range(1 + wakes):
                time.sleep(POLLING_AGAIN + moments.uniform(0, max_wait / 1000))
                value = b"%d" % number
                began = time.perf_counter()
                producer.produce(TOPIC, value, partition=0)
                producer.poll(0)
                message = consumer.poll(PATIENCE)
                latencies.append((time.perf_counter() - began) * 1000)
                if message is None or message.error() is not None or message.value() != value:
                    raise RuntimeError(
                        f"{value!r} was produced, and {message and message.value()!r} consumed"
                    )
                producer.flush(PATIENCE)
    # The first record made the connections.
    latencies = sorted(latencies[1:])
    return {"p50_ms": percentile(latencies, 50), "p99_ms": percentile(latencies, 99)}


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
                f"records of {length:,} bytes", partial(measure_throughput, records=records, length=length)
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


def measure_throughput(name: str, records: int, length: int) -> Sample:
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
        for start in range(0, records, BATCH):
            for _ in range(min(BATCH, records - start)):
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
