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
from benchmarks.harness.processes import allow_open_files, processor_seconds, resident_bytes, stat_fields
from benchmarks.harness.setting import Setting
from benchmarks.suites.broker.clusters import EXAMPLE, PATIENCE, TOPIC, Cluster, cases, running
from examples.broker.protocol.apis import FETCH
from examples.broker.protocol.codec import encode_request

# Seconds after which requests have been read, and their reader is idle again.
SETTLED = 1.0
# Longer than any measurement.
MAX_WAIT = timedelta(minutes=10)
# Connections that are made at the same time.
_TOGETHER = 50


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
    leader = cluster.leader()
    producer = Producer({**cluster.client_settings, "acks": "all", "linger.ms": 0})
    connections: list[_Poll] = []
    try:
        await asyncio.sleep(SETTLED)
        alone = await _processor_time(cluster, seconds)
        at_first = resident_bytes(cluster.process_id)
        for start in range(0, polls, _TOGETHER):
            connecting = (_Poll.connected(leader) for _ in range(min(_TOGETHER, polls - start)))
            connections += await asyncio.gather(*connecting)
        await asyncio.sleep(SETTLED)
        connected = resident_bytes(cluster.process_id)
        for connection in connections:
            connection.transport.write(_LONG_POLL)
        await asyncio.sleep(SETTLED)
        waiting = resident_bytes(cluster.process_id)
        sample = {
            "poll_kib": (waiting - connected) / polls / 1024,
            "connection_kib": (connected - at_first) / polls / 1024,
            "processor_ms": await _processor_time(cluster, seconds) * 1000,
            "alone_ms": alone * 1000,
        }
        if wakes:
            sample |= await _wake(producer, connections)
    finally:
        for connection in connections:
            connection.transport.close()
        producer.flush(PATIENCE)
    return sample


async def _processor_time(cluster: Cluster, seconds: float) -> float:
    """Per second."""
    before = processor_seconds(stat_fields(cluster.process_id))
    await asyncio.sleep(seconds)
    return (processor_seconds(stat_fields(cluster.process_id)) - before) / seconds


async def _wake(producer: Producer, connections: list[_Poll]) -> Sample:
    began = time.perf_counter()
    producer.produce(TOPIC, b"news", partition=0)
    producer.poll(0)
    async with asyncio.timeout(PATIENCE):
        arrivals = await asyncio.gather(*(connection.answered for connection in connections))
    latencies = sorted((arrived - began) * 1000 for arrived in arrivals)
    return {"wake_p50_ms": percentile(latencies, 50), "wake_p99_ms": percentile(latencies, 99)}


class _Poll(asyncio.Protocol):
    """A connection, and the one fetch on it. `answered` is the time of its answer."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._received = b""

    @classmethod
    async def connected(cls, address: tuple[str, int]) -> _Poll:
        poll = cls()
        poll.transport, _ = await asyncio.get_running_loop().create_connection(lambda: poll, *address)
        return poll

    def data_received(self, data: bytes) -> None:
        self._received += data
        size = int.from_bytes(self._received[:4], "big")
        if len(self._received) == 4 + size and not self.answered.done():
            self.answered.set_result(time.perf_counter())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answered.done():
            self.answered.cancel()


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
