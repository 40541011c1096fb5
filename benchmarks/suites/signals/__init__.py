"""A signal in one worker wakes a wait in another: purgatory.relay beside what else does that over Redis.

The relay is measured over each of its transports, and each library in its documented use. All of them have
the same four workers, the same waits and the same records, on a server of their own. The waits of the
libraries stay subscribed. The waits of a purgatory begin anew for each record.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

from benchmarks.harness.benchmark import (
    Parts,
    Sample,
    Setting,
    Table,
    benchmark,
    medians,
    percentiles,
    spreads,
)
from benchmarks.harness.event_loop import run
from benchmarks.harness.processes import ROOT
from benchmarks.suites.signals import libraries, relayed
from benchmarks.suites.signals.servers import SERVERS, Server
from benchmarks.suites.signals.worker import Carrier, Plan

WORKERS = 4
# Records in a second.
RATE = 400.0
# Seconds between two cuts of all connections.
CUT = 0.5
# Seconds after the last record, until a wait counts as lost.
PATIENCE = 10.0
# What carries the signals, and the servers that it needs. What signals over NATS are about is in a Redis.
CARRIERS: dict[str, tuple[type[Carrier], tuple[str, ...]]] = {
    "purgatory.relay, Redis, notify": (relayed.OverRedis, ("redis",)),
    "purgatory.relay, Redis, signal": (relayed.OverRedisAfterwards, ("redis",)),
    "purgatory.relay, PostgreSQL, notify": (relayed.OverPostgres, ("postgres",)),
    "purgatory.relay, PostgreSQL, signal": (relayed.OverPostgresAfterwards, ("postgres",)),
    "purgatory.relay, NATS, signal": (relayed.OverNats, ("redis", "nats")),
    "channels_redis, pub/sub layer": (libraries.PubSubLayer, ("redis",)),
    "channels_redis, core layer": (libraries.CoreLayer, ("redis",)),
    "broadcaster": (libraries.Broadcaster, ("redis",)),
}


@benchmark("signals", "{n:,} waits in four workers, signals at random workers", (400,), (2_000,), 300.0)
def signals(setting: Setting) -> Parts:
    """The first size is the number of waits."""
    yield Table(
        "From the sending of a record until its wait is over: milliseconds, and waits that are lost",
        spreads(p50_ms="p50", p99_ms="p99")
        + medians(calm_lost="lost", cut_p99_ms="cuts: p99", lost="cuts: lost"),
        f"{setting.sizes[0]:,} waits, each for a topic of its own, and one record for each, {RATE:g} in a "
        f"second. Then the same while the server cuts all connections every {CUT:g} s. A wait is lost if it "
        f"is not over {PATIENCE:g} s after the last record; each p99 is that of the others. A record that "
        "the client refuses is sent again.",
    )
    yield Table(
        "Processor time: microseconds",
        spreads(signal_us="for each record") + medians(server_us="the servers for each"),
        "The four workers together, and the servers together, while nothing is cut. Waits begin before, and "
        "subscribe before, so that is not in it.",
    )
    for name in CARRIERS:
        yield from setting.case("signals", name, partial(measure, setting, name))


def measure(setting: Setting, name: str) -> Sample:
    sample: Sample = run(setting.loop, _measure, setting, name)
    return sample


async def _measure(setting: Setting, name: str) -> Sample:
    plan = Plan(WORKERS, setting.sizes[0], RATE)
    async with AsyncExitStack() as stack:
        running = {each: await stack.enter_async_context(SERVERS[each]()) for each in CARRIERS[name][1]}
        urls = {each: server.url for each, server in running.items()}
        servers = list(running.values())
        workers = [
            await stack.enter_async_context(Worker.started(setting.loop, name, urls, number, plan))
            for number in range(WORKERS)
        ]
        await told(workers, do="wait")
        before = sum(server.processor_seconds() for server in servers)
        calm = await round(workers, plan)
        after = sum(server.processor_seconds() for server in servers)
        await told(workers, do="wait")
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(cut_again_and_again(servers, over))
            cut = await round(workers, plan)
            over.set()
    sample = {
        **percentiles(milliseconds(calm)),
        "calm_lost": sum(each["lost"] for each in calm),
        "lost": sum(each["lost"] for each in cut),
        "signal_us": processor_seconds(calm) / plan.topics * 1e6,
        "server_us": (after - before) / plan.topics * 1e6,
    }
    # A carrier may have lost all.
    if waited := milliseconds(cut):
        sample["cut_p99_ms"] = percentiles(waited)["p99_ms"]
    return sample


class Worker:
    """A process of the benchmark."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    @asynccontextmanager
    async def started(
        cls, loop: str, name: str, urls: dict[str, str], number: int, plan: Plan
    ) -> AsyncIterator[Worker]:
        arguments = [loop, name, json.dumps(urls), number, plan.workers, plan.topics, plan.rate]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__, *map(str, arguments)),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=2**24,
        )
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def told(self, command: dict[str, Any]) -> dict[str, Any]:
        """Its answer to a command. Raises RuntimeError when it has ended; the reason is on stderr."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("a worker of the benchmark has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


Answers = Sequence[dict[str, Any]]


async def told(workers: Sequence[Worker], **command: Any) -> Answers:
    return await asyncio.gather(*(worker.told(command) for worker in workers))


async def round(workers: Sequence[Worker], plan: Plan) -> Answers:
    """One record for each topic."""
    start = time.monotonic() + 0.1
    return await told(workers, do="send", start=start, until=start + plan.topics / plan.rate + PATIENCE)


def milliseconds(answers: Answers) -> list[float]:
    return [each for answer in answers for each in answer["milliseconds"]]


def processor_seconds(answers: Answers) -> float:
    seconds: float = sum(answer["processor_seconds"] for answer in answers)
    return seconds


async def cut_again_and_again(servers: Sequence[Server], over: asyncio.Event) -> None:
    """End all connections of the workers, until it is over.

    It is not cancelled, because a client of a server may swallow that.
    """
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), CUT)
            return
        for server in servers:
            await server.cut()
