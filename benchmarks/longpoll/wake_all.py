"""One record wakes all that poll a topic."""

from __future__ import annotations

import asyncio
import itertools
import time
from functools import partial

from benchmarks import loops
from benchmarks.broker.processes import resident_bytes
from benchmarks.load.measurement import percentile
from benchmarks.longpoll.crowd import PATIENCE, gathered
from benchmarks.longpoll.servers import Running, running
from benchmarks.longpoll.ways import contenders
from benchmarks.question import Column, Question, Sample, Table

# Seconds after which what has happened shows in the memory.
SETTLED = 0.5


def wake_all(loop: str, polls: int) -> Question:
    """The question, of so many polls."""
    return Question(
        name="wake-all",
        summary=f"what {polls:,} long polls of one topic cost that one record wakes",
        contenders=contenders(lambda way: partial(measure, way, loop, polls)),
        tables=(
            Table(
                title=f"One record wakes {polls:,} long polls",
                columns=(
                    Column("processor_us", "CPU us/poll"),
                    Column("p50_ms", "p50 ms"),
                    Column("p99_ms", "p99 ms", spread=False),
                    Column("stall_ms", "stall ms", spread=False),
                ),
                note="From the record until all clients have their answers: the server's processor time for "
                "each; from sending the record to a client's answer; and the longest for which the server's "
                "loop was held.",
            ),
            Table(
                title=f"{polls:,} long polls that wait",
                columns=(
                    Column("poll_kib", "KiB/poll"),
                    Column("connection_kib", "KiB/connection"),
                ),
                note="By how much the server has grown when all wait; and before, when they were connected "
                "and nothing more.",
            ),
            Table(
                title="The server's processor time for a poll: microseconds",
                columns=(
                    Column("round_trip_us", "waits and is woken"),
                    Column("park_us", "until it waits", spread=False),
                    Column("ready_us", "need not wait", spread=False),
                ),
                note="The last is a poll that is answered at once, because there is news already; that is "
                "HTTP, in the main.",
            ),
        ),
        patience=600.0,
    )


def measure(way: str, loop: str, polls: int) -> Sample:
    """One record, and all that goes before. RuntimeError when it does not wake everybody."""
    with running(way, loop) as server:
        return loops.run(loop, _measure(server, polls))


async def _measure(server: Running, polls: int) -> Sample:
    await asyncio.sleep(SETTLED)
    at_first = resident_bytes(server.process_id)
    async with gathered(server, polls, lambda _: "news") as crowd:
        await asyncio.sleep(SETTLED)
        connected = resident_bytes(server.process_id)
        idle = await crowd.figures()
        answers = await crowd.all_poll()
        await asyncio.sleep(SETTLED)
        waiting = resident_bytes(server.process_id)
        parked = await crowd.figures()
        await crowd.watch()
        began = time.perf_counter()
        await crowd.post(0, "record", alone=False)
        async with asyncio.timeout(PATIENCE):
            woken = await asyncio.gather(*answers)
        after = await crowd.figures()
        # And once more, now that there is something for them.
        await asyncio.gather(*(crowd.poll(number, 0) for number in range(polls)))
        answered = await crowd.figures()
    if any(answer.content != {"next": 1, "records": ["record"]} for answer in woken):
        raise RuntimeError("a client has been given something else than the record")
    park, wake, ready = (
        (end.processor_seconds - start.processor_seconds) / polls * 1e6
        for start, end in itertools.pairwise((idle, parked, after, answered))
    )
    latencies = sorted((answer.at - began) * 1e3 for answer in woken)
    return {
        "processor_us": wake,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "stall_ms": after.stall_ms,
        "poll_kib": (waiting - connected) / polls / 1024,
        "connection_kib": (connected - at_first) / polls / 1024,
        "round_trip_us": park + wake,
        "park_us": park,
        "ready_us": ready,
    }
