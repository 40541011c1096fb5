"""How long a consumer in the middle of a long poll waits for a record, from when it is produced."""

from __future__ import annotations

import random
import time
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.broker.clusters import CLUSTERS, PATIENCE, TOPIC, Cluster
from benchmarks.load.measurement import percentile
from benchmarks.question import Column, Contender, Question, Sample, Table

# What clients have by default, and so short that polling all the time does it, too. In milliseconds.
MAX_WAITS = (500, 5)
# Seconds in which a consumer that has got a record asks for the next.
_POLLING_AGAIN = 0.01


def wake(wakes: int) -> Question:
    """The question, of so many records one after the other."""
    return Question(
        name="wake",
        summary="how long a waiting consumer waits for a record that is produced",
        contenders=tuple(
            Contender(
                f"fetch.wait.max.ms={max_wait}",
                cluster.name,
                partial(measure, cluster, max_wait / 1000, wakes),
            )
            for max_wait in MAX_WAITS
            for cluster in CLUSTERS
        ),
        tables=(
            Table(
                title="From produce(), acks=all, to the consumer in a long poll: milliseconds",
                columns=(Column("p50_ms", "p50"), Column("p99_ms", "p99")),
                note=f"{wakes:,} records, each at a random moment of the poll. The mock cluster wakes "
                "nobody: when fetch.wait.max.ms are over it answers, and the next fetch has the record.",
            ),
        ),
        patience=600.0,
    )


def measure(cluster: Cluster, max_wait: float, wakes: int) -> Sample:
    """Milliseconds; RuntimeError when a record is lost."""
    with cluster.running() as running:
        running.leader()
        producer = Producer({**running.client_settings, "acks": "all", "linger.ms": 0})
        consumer = Consumer(
            {
                **running.client_settings,
                "group.id": "none",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": round(max_wait * 1000),
            }
        )
        try:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            # The first makes the connections.
            _wake(producer, consumer, b"first")
            moments = random.Random(1)
            latencies = []
            for number in range(wakes):
                time.sleep(_POLLING_AGAIN + moments.uniform(0, max_wait))
                latencies.append(_wake(producer, consumer, b"%d" % number) * 1000)
        finally:
            consumer.close()
    latencies.sort()
    return {"p50_ms": percentile(latencies, 50), "p99_ms": percentile(latencies, 99)}


def _wake(producer: Producer, consumer: Consumer, value: bytes) -> float:
    began = time.perf_counter()
    producer.produce(TOPIC, value, partition=0)
    producer.poll(0)
    message = consumer.poll(PATIENCE)
    took = time.perf_counter() - began
    if message is None or message.error() is not None or message.value() != value:
        raise RuntimeError(f"{value!r} was produced, and {message and message.value()!r} consumed")
    producer.flush(PATIENCE)
    return took
