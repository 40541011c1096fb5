"""Durable delayed messages beside a table of SQLite and a sorted set of Redis.

All are used from one event loop with the same payloads of 100 bytes. Their servers and threads count, in
processor time and in memory. What polls does so every 10 ms.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
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
from benchmarks.harness.event_loop import CollectorPauses, Heartbeat, run
from benchmarks.harness.processes import resident_bytes
from benchmarks.suites.delayed.stores import STORES, DelayStore, SQLite

CALLERS = 64
PAYLOAD = b"x" * 100
# Seconds of the shortest and the longest delay; all between are as likely on a logarithmic scale.
SHORTEST, LONGEST = 1.0, 7200.0
# Callers where the rate does not matter, and seconds between scheduling and the first due time.
AT_ONCE, HALF_A_MINUTE = 1000, 30.0
# Seconds that a store gets after it was opened.
SETTLED = 5.0
Kind = type[DelayStore]


@benchmark(
    "delayed-rate", "delayed messages scheduled and cancelled", (20_000,), (100_000,), time_limit=120.0
)
def rate(setting: Setting) -> Parts:
    """The first size is the number of messages."""
    note = (
        f"{CALLERS} callers, each of which waits until its message is on the disk; delays from 1 s to 2 h, "
        "log-uniform. What becomes due is delivered meanwhile. Redis with everysec does not wait for the disk."
    )
    columns = ("us", "wall us"), ("per_s", "per second"), ("cpu_us", "CPU us"), ("disk", "bytes written")
    for verb in ("schedule", "cancel"):
        first, *others = ({f"{verb}_{metric}": heading} for metric, heading in columns)
        yield Table(
            f"To {verb} a message",
            (*spreads(**first), *medians(**dict(p for o in others for p in o.items()))),
            note,
        )
        note = f"{CALLERS} callers, in random order."
    yield from setting.cases("64 callers", STORES, partial(measure_rate, setting), interpreted=False)


def delays(count: int) -> Iterator[float]:
    choice = random.Random(count)
    return (SHORTEST * (LONGEST / SHORTEST) ** choice.random() for _ in range(count))


async def call(callers: int, each: Callable[[Any], Awaitable[object]], arguments: Iterable[Any]) -> None:
    """Each caller takes the next argument when it has its answer."""
    left = iter(arguments)

    async def caller() -> None:
        for argument in left:
            await each(argument)

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller())


def in_directory(setting: Setting, kind: Kind, measure: Callable[..., Any], *arguments: Any) -> Sample:
    with tempfile.TemporaryDirectory(dir=setting.directory) as directory:
        sample: Sample = run(setting.loop, measure, kind, Path(directory), *arguments)
        return sample


def measure_rate(setting: Setting, kind: Kind) -> Sample:
    return in_directory(setting, kind, _rate, setting.sizes[0])


async def _rate(kind: Kind, directory: Path, count: int) -> Sample:
    async def deliver(id: str, payload: bytes, due: float) -> None:
        pass

    async with kind(directory, deliver) as store:
        receipts: list[Any] = []
        cancelled = 0

        async def schedule(delay: float) -> None:
            receipts.append(await store.schedule(PAYLOAD, time.time() + delay))

        async def cancel(receipt: Any) -> None:
            nonlocal cancelled
            if await store.cancel(receipt):
                cancelled += 1

        sample: dict[str, float] = {}
        shuffled = (receipts.pop(random.randrange(len(receipts))) for _ in range(count))
        steps = ("schedule", schedule, delays(count)), ("cancel", cancel, shuffled)
        for verb, each, arguments in steps:
            cpu, disk, began = store.processor_seconds(), store.written_bytes(), time.perf_counter()
            await call(CALLERS, each, arguments)
            seconds = time.perf_counter() - began
            cpu, disk = store.processor_seconds() - cpu, store.written_bytes() - disk
            figures = {"us": seconds * 1e6, "cpu_us": cpu * 1e6, "disk": disk}
            sample.update({f"{verb}_{metric}": figure / count for metric, figure in figures.items()})
            sample[f"{verb}_per_s"] = count / seconds
        if cancelled < count / 2:
            raise AssertionError(f"{kind.name}: only {cancelled} of {count} could be cancelled")
        return sample


@benchmark("delayed-lateness", "delayed messages that are due at {n:,}/s", (10_000,), time_limit=120.0)
def lateness(setting: Setting) -> Parts:
    """The first size is the rate, for ten times the seconds of the setting."""
    yield Table(
        "From the due time until it is delivered: milliseconds",
        spreads(p99_ms="p99")
        + medians(p50_ms="p50", max_ms="max", early="early", cpu_us="CPU us", disk="bytes written"),
        f"{setting.sizes[0]:,} due per second for {10 * setting.seconds:g} s, scheduled half a minute before; early: "
        "how many came before their time. Processor time and bytes written from the first due time on, for each.",
    )
    yield Table(
        "The longest stall of the loop meanwhile: milliseconds",
        spreads(stall_ms="stall") + medians(stall_busy_ms="working"),
    )
    count = round(setting.sizes[0] * 10 * setting.seconds)
    measure = partial(measure_due, setting, count, 10 * setting.seconds)
    yield from setting.cases("all on one loop", STORES, measure, interpreted=False)


@benchmark(
    "delayed-burst", "{n:,} delayed messages due in one second", (100_000,), (1_000_000,), time_limit=300.0
)
def burst(setting: Setting) -> Parts:
    """The first size is the number of messages."""
    count = setting.sizes[0]
    yield Table(
        f"{count:,} messages due in one second: the longest stall of the loop, milliseconds",
        spreads(stall_ms="stall") + medians(stall_busy_ms="working", stall_apart_ms="but collector"),
        "Of a task that beats each millisecond. 'Working' is the most processor time that the loop's thread used "
        "between two beats; 'but collector' leaves out the garbage collector's pauses.",
    )
    yield Table(
        f"{count:,} messages due in one second: until the last is delivered, seconds",
        spreads(drain_s="drain") + medians(p99_ms="p99 ms", early="early", cpu_us="CPU us", rss_mib="MiB"),
        "p99 is that of the lateness. MiB: by how much the processes have grown at most since the first was due.",
    )
    yield from setting.cases(
        "all on one loop", STORES, partial(measure_due, setting, count, 1.0), interpreted=False
    )


def measure_due(setting: Setting, count: int, seconds: float, kind: Kind) -> Sample:
    return in_directory(setting, kind, _due, count, seconds)


async def _due(kind: Kind, directory: Path, count: int, seconds: float) -> Sample:
    """All are scheduled before the first is due, and for purgatory.delayed are in a slot file."""
    late = array("d")

    async def deliver(id: str, payload: bytes, due: float) -> None:
        late.append(time.time() - due)

    async def watch(store: DelayStore) -> None:
        nonlocal peak
        while True:
            peak = max(peak, store.resident_bytes())
            await asyncio.sleep(0.1)

    async with kind(directory, deliver) as store:
        began = time.perf_counter()
        # They are due later than what is estimated from the first messages, which are cancelled again.
        first = time.time() + 3600
        some: list[Any] = []

        async def try_out(_: int) -> None:
            some.append(await store.schedule(PAYLOAD, first))

        await call(AT_ONCE, try_out, range(max(1, count // 20)))
        lead = HALF_A_MINUTE + 40 * (time.perf_counter() - began)
        await call(AT_ONCE, store.cancel, some)
        first = time.time() + lead
        await call(
            AT_ONCE, lambda place: store.schedule(PAYLOAD, first + seconds * place / count), range(count)
        )
        if time.time() > first - HALF_A_MINUTE / 2:
            raise AssertionError(f"{kind.name}: {count} were not scheduled within {lead:.0f} s")
        heartbeat, pauses = Heartbeat(), CollectorPauses()
        with pauses.watched():
            await heartbeat.until(lambda: time.time() > first - 2, pauses)
            peak = rss = store.resident_bytes()
            cpu, disk = store.processor_seconds(), store.written_bytes()
            watching = asyncio.create_task(watch(store))
            await heartbeat.until(lambda: len(late) == count, pauses)
        watching.cancel()
        return {
            **percentiles(each * 1e3 for each in late),
            "max_ms": max(late) * 1e3,
            "early": sum(each < 0 for each in late),
            "stall_ms": heartbeat.worst * 1e3,
            "stall_busy_ms": heartbeat.worst_busy * 1e3,
            "stall_apart_ms": heartbeat.worst_apart * 1e3,
            "drain_s": time.time() - first,
            "cpu_us": (store.processor_seconds() - cpu) / count * 1e6,
            "disk": (store.written_bytes() - disk) / count,
            "rss_mib": (peak - rss) / 2**20,
        }


@benchmark("delayed-pending", "{n:,} delayed messages pending", (100_000,), (1_000_000,), time_limit=300.0)
def pending(setting: Setting) -> Parts:
    """The first size is the number of messages."""
    yield Table(
        f"{setting.sizes[0]:,} messages pending, with delays from 1 s to 2 h",
        spreads(rss_mib="MiB of memory")
        + medians(peak_mib="at most", memory="B/message", disk="B of disk/message", files="files"),
        "By how much the processes have grown since the store was opened, when all are scheduled, and at most "
        "until then; the files' blocks, and how many files. What became due meanwhile was delivered.",
    )
    yield Table(
        f"Opened again with {setting.sizes[0]:,} pending: seconds until the first message is delivered",
        spreads(killed_s="after kill -9", closed_s="after closing")
        + medians(killed_cpu_s="CPU s", reopened_mib="MiB of memory"),
        "Killed while messages are scheduled. Something is due already when it is opened.",
    )
    stores = [kind for kind in STORES if kind is not SQLite]
    yield from setting.cases("all", stores, partial(measure_pending, setting), interpreted=False)


def measure_pending(setting: Setting, kind: Kind) -> Sample:
    with tempfile.TemporaryDirectory(dir=setting.directory) as directory:
        sample: dict[str, float] = {}
        for step in ("fill", "killed", "closed"):
            command = ["-m", __name__, setting.loop, step, kind.name, directory, str(setting.sizes[0])]
            finished = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, check=False)
            sample |= json.loads(finished.stdout)
        return sample


async def fill(kind: Kind, directory: Path, count: int) -> None:
    """Schedule the messages, print the figures, and be killed while there are more."""

    async def deliver(id: str, payload: bytes, due: float) -> None:
        pass

    async with kind(directory, deliver) as store:
        before = peak = store.resident_bytes()

        async def schedule(delay: float) -> None:
            nonlocal peak, left
            await store.schedule(PAYLOAD, time.time() + delay)
            left -= 1
            if left % 10_000 == 0:
                peak = max(peak, store.resident_bytes())
            if left == 0:
                rss = store.resident_bytes() - before
                files = [path.stat() for path in directory.rglob("*") if path.is_file()]
                figures = {
                    "rss_mib": rss / 2**20,
                    "peak_mib": (peak - before) / 2**20,
                    "memory": rss / count,
                    "disk": sum(each.st_blocks * 512 for each in files) / count,
                    "files": len(files),
                }
                print(json.dumps(figures), flush=True)
                store.kill()

        left = count
        await call(CALLERS, schedule, delays(count + AT_ONCE))


async def reopen(kind: Kind, directory: Path, step: str) -> None:
    """Wait for the first message, then for what a restart leaves to do, and close."""
    first = asyncio.get_running_loop().create_future()

    async def deliver(id: str, payload: bytes, due: float) -> None:
        if not first.done():
            first.set_result(time.perf_counter())

    before = resident_bytes(os.getpid())
    cpu, began = time.process_time(), time.perf_counter()
    async with kind(directory, deliver) as store:
        figures = {f"{step}_s": await first - began, f"{step}_cpu_s": time.process_time() - cpu}
        await asyncio.sleep(SETTLED)
        figures["reopened_mib"] = (store.resident_bytes() - before) / 2**20
    print(json.dumps(figures))
