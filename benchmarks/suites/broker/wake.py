"""The time from producing a record until a consumer in the middle of a long poll has it."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table, percentile
from benchmarks.harness.setting import Setting
from benchmarks.suites.broker.clusters import PATIENCE, TOPIC, cases, running

# Milliseconds: the clients' default, and so short that continuous polling would do as well.
MAX_WAITS = (500, 5)
# Seconds in which a consumer that has a record asks for the next.
_POLLING_AGAIN = 0.01


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
                f"fetch.wait.max.ms={max_wait}", partial(measure, max_wait=max_wait, wakes=wakes)
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


def measure(name: str, max_wait: int, wakes: int) -> Sample:
    """Milliseconds. Raises RuntimeError when a record is lost."""
    latencies = []
    moments = random.Random(1)
    with running(name) as cluster:
        producer = Producer({**cluster.client_settings, "acks": "all", "linger.ms": 0})
        settings = {"group.id": "none", "enable.auto.commit": False, "fetch.wait.max.ms": max_wait}
        with closing(Consumer({**cluster.client_settings, **settings})) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            for number in range(1 + wakes):
                time.sleep(_POLLING_AGAIN + moments.uniform(0, max_wait / 1000))
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
