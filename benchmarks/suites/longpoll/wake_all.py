"""One record wakes all clients that poll a topic."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence

from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table, medians, percentile
from benchmarks.harness.processes import resident_bytes
from benchmarks.harness.setting import Setting
from benchmarks.suites.longpoll.clients import PATIENCE, Server, cases, connected

# Seconds after which a change shows in the memory.
SETTLED = 0.5


def wake_all(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """The first of `sizes` is the number of polls."""
    polls = sizes[0]
    return Benchmark(
        name="wake-all",
        summary=f"cost of {polls:,} long polls of one topic that one record wakes",
        cases=cases(setting.loop, polls, measure),
        tables=(
            Table(
                f"One record wakes {polls:,} long polls",
                (
                    Column("processor_us", "CPU us/poll"),
                    Column("p50_ms", "p50 ms"),
                    *medians(p99_ms="p99 ms", stall_ms="stall ms"),
                ),
                "From the record until all clients have their answers: the server's processor time for "
                "each; from sending the record to a client's answer; and the longest for which the server's "
                "loop was held.",
            ),
            Table(
                f"{polls:,} long polls that wait",
                (Column("poll_kib", "KiB/poll"), Column("connection_kib", "KiB/connection")),
                "By how much the server has grown when all wait; and before, when they were connected "
                "and nothing more.",
            ),
            Table(
                "The server's processor time for a poll: microseconds",
                (
                    Column("round_trip_us", "waits and is woken"),
                    *medians(park_us="until it waits", ready_us="need not wait"),
                ),
                "The last is a poll that is answered at once, because there is news already; that is "
                "HTTP, in the main.",
            ),
        ),
        time_limit=600.0,
    )


async def measure(server: Server) -> Sample:
    """One record, and all steps before it. Raises RuntimeError when it does not wake all clients."""
    await asyncio.sleep(SETTLED)
    at_first = resident_bytes(server.process_id)
    async with connected(server) as clients:
        await asyncio.sleep(SETTLED)
        connected_bytes = resident_bytes(server.process_id)
        idle = await clients.figures()
        answers = [clients.poll(number, "news") for number in range(server.polls)]
        await clients.all_wait()
        await asyncio.sleep(SETTLED)
        waiting = resident_bytes(server.process_id)
        parked = await clients.figures(watch=True)
        began = time.perf_counter()
        await clients.post("news", "record")
        async with asyncio.timeout(PATIENCE):
            woken = await asyncio.gather(*answers)
        after = await clients.figures()
        # All poll once more, now that there is news.
        await asyncio.gather(*(clients.poll(number, "news") for number in range(server.polls)))
        answered = await clients.figures()
    if any(content != {"next": 1, "records": ["record"]} for content, _ in woken):
        raise RuntimeError("a client got an answer without the record")
    park, wake, ready = (
        (end["processor_seconds"] - start["processor_seconds"]) / server.polls * 1e6
        for start, end in itertools.pairwise((idle, parked, after, answered))
    )
    latencies = sorted((at - began) * 1e3 for _, at in woken)
    return {
        "processor_us": wake,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "stall_ms": after["stall_ms"],
        "poll_kib": (waiting - connected_bytes) / server.polls / 1024,
        "connection_kib": (connected_bytes - at_first) / server.polls / 1024,
        "round_trip_us": park + wake,
        "park_us": park,
        "ready_us": ready,
    }
