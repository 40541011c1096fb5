"""The cost of consumers that wait for nothing, and how soon one record wakes all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta

from confluent_kafka import Producer
from kio.schema.fetch.v12 import FetchRequest
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table, percentile
from benchmarks.harness.connections import connected
from benchmarks.harness.processes import allow_open_files, processor_seconds, resident_bytes, stat_fields
from benchmarks.harness.setting import Setting
from benchmarks.suites.broker.clusters import EXAMPLE, PATIENCE, TOPIC, Cluster, cases, running
from examples.broker.protocol.apis import FETCH
from examples.broker.protocol.codec import encode_request

# Seconds after which requests have been read, and their reader is idle again.
SETTLED = 1.0
# Longer than any measurement.
MAX_WAIT = timedelta(minutes=10)


def idle(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """The first of `sizes` is the number of consumers, each with a connection."""
    polls, seconds = sizes[0], 10 * setting.seconds if setting.full else 2 * setting.seconds
    return Benchmark(
        name="idle-consumers",
        summary=f"what {polls:,} consumers cost that wait for nothing",
        cases=tuple(cases("three brokers", lambda name: measure(name, polls, seconds))),
        tables=(
            Table(
                f"{polls:,} idle long polls, each on a connection of its own",
                (
                    Column("poll_kib", "KiB/poll"),
                    Column("connection_kib", "KiB/connection"),
                    Column("processor_ms", "CPU ms/s"),
                    Column("alone_ms", "without"),
                ),
                "By how much the process has grown when they are connected and nothing more, and again "
                f"when all wait. Its processor time is that of {seconds:g} s, per second, to a hundredth of "
                "a second in all; what the brokers take without any poll is mostly replication.",
            ),
            Table(
                "One record wakes them all: milliseconds from produce() to the consumer",
                (Column("wake_p50_ms", "p50"), Column("wake_p99_ms", "p99")),
                "The mock cluster wakes nobody.",
            ),
        ),
        time_limit=600.0,
    )


def measure(name: str, polls: int, seconds: float) -> Sample:
    """The cost with the polls and without. ValueError where so many files may not be open."""
    allow_open_files(polls + 500)
    with running(name) as cluster:
        return asyncio.run(_measure(cluster, polls, seconds, wakes=name == EXAMPLE))


async def _measure(cluster: Cluster, polls: int, seconds: float, *, wakes: bool) -> Sample:
    producer = Producer({**cluster.client_settings, "acks": "all", "linger.ms": 0})
    await asyncio.sleep(SETTLED)
    alone = await _processor_time(cluster, seconds)
    at_first = resident_bytes(cluster.process_id)
    async with connected(cluster.leader, polls, _response) as connections:
        await asyncio.sleep(SETTLED)
        connected_bytes = resident_bytes(cluster.process_id)
        answers = [connection.ask(_LONG_POLL) for connection in connections]
        await asyncio.sleep(SETTLED)
        waiting = resident_bytes(cluster.process_id)
        sample = {
            "poll_kib": (waiting - connected_bytes) / polls / 1024,
            "connection_kib": (connected_bytes - at_first) / polls / 1024,
            "processor_ms": await _processor_time(cluster, seconds) * 1000,
            "alone_ms": alone * 1000,
        }
        if wakes:
            began = time.perf_counter()
            producer.produce(TOPIC, b"news", partition=0)
            producer.poll(0)
            async with asyncio.timeout(PATIENCE):
                woken = await asyncio.gather(*answers)
            latencies = sorted((at - began) * 1000 for _, at in woken)
            sample["wake_p50_ms"] = percentile(latencies, 50)
            sample["wake_p99_ms"] = percentile(latencies, 99)
    producer.flush(PATIENCE)
    return sample


async def _processor_time(cluster: Cluster, seconds: float) -> float:
    """Per second."""
    before = processor_seconds(stat_fields(cluster.process_id))
    await asyncio.sleep(seconds)
    return (processor_seconds(stat_fields(cluster.process_id)) - before) / seconds


def _response(received: bytes) -> bytes | None:
    """A whole response, which begins with its size."""
    return received if len(received) == 4 + int.from_bytes(received[:4], "big") else None


_PARTITION = FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1 << 20))
_LONG_POLL = encode_request(
    FETCH,
    1,
    "idle",
    FetchRequest(
        max_wait=i32Timedelta.parse(MAX_WAIT),
        min_bytes=i32(1),
        max_bytes=i32(1 << 20),
        topics=(FetchTopic(topic=TopicName(TOPIC), partitions=(_PARTITION,)),),
        forgotten_topics_data=(),
    ),
)
