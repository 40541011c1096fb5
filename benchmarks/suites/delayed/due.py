"""Messages that are due one by one, or nearly at once: how late they are, and what holds the loop."""

from __future__ import annotations

import time
from array import array
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
from benchmarks.harness.event_loop import CollectorPauses, CollectorSetting, Heartbeat
from benchmarks.suites.delayed.callers import AT_ONCE, HALF_A_MINUTE, PAYLOAD, Kind, call, cases, in_directory
from benchmarks.suites.delayed.stores import FAST, STORES


@benchmark("delayed-lateness", "delayed messages that are due at {n:,}/s", (10_000,), time_limit=100.0)
def lateness(setting: Setting) -> Parts:
    """The first size is the rate, for ten times the seconds of the setting."""
    yield Table(
        "From the due time until it is delivered: milliseconds",
        spreads(p99_ms="p99")
        + medians(p50_ms="p50", max_ms="max", early="early", cpu_us="CPU us", disk="bytes written"),
        f"{setting.sizes[0]:,} due per second for {10 * setting.seconds:g} s, scheduled half a minute "
        "before. Early: how many came before their time. Processor time and bytes are for each message, from "
        "the first due time on, without what it took to schedule it.",
    )
    yield Table(
        "The longest stall of the loop meanwhile: milliseconds",
        spreads(stall_ms="stall") + medians(stall_busy_ms="working"),
    )
    count = round(setting.sizes[0] * 10 * setting.seconds)
    measure = partial(measure_due, setting, count, 10 * setting.seconds)
    yield from cases(setting, STORES, measure)


@benchmark(
    "delayed-burst", "{n:,} delayed messages due in one second", (100_000,), (1_000_000,), time_limit=120.0
)
def burst(setting: Setting) -> Parts:
    """The first size is the number of messages."""
    count = setting.sizes[0]
    yield Table(
        f"{count:,} messages due in one second: the longest stall of the loop, milliseconds",
        spreads(stall_ms="stall") + medians(stall_busy_ms="working", stall_apart_ms="but collector"),
        "Of a task that beats each millisecond. 'Working' is the most processor time that the loop's thread "
        "used between two beats; 'but collector' leaves out the garbage collector's pauses. The collector is "
        "set as the README advises.",
    )
    yield Table(
        f"{count:,} messages due in one second: until the last is delivered, seconds",
        spreads(drain_s="drain") + medians(p99_ms="p99 ms", early="early", cpu_us="CPU us", rss_mib="MiB"),
        "p99 is that of the lateness. MiB: by how much the processes have grown at most from then on.",
    )
    yield from cases(setting, FAST, partial(measure_due, setting, count, 1.0))


def measure_due(setting: Setting, count: int, seconds: float, kind: Kind) -> Sample:
    with CollectorSetting.ADVISED.applied():
        return in_directory(setting, kind, _due, count, seconds)


async def _due(kind: Kind, directory: Path, count: int, seconds: float) -> Sample:
    """All are scheduled before the first is due, and for purgatory.delayed are in a slot file."""
    late = array("d")

    async def deliver(id: str, payload: bytes, due: float) -> None:
        late.append(time.time() - due)

    def reached(delivered: int) -> bool:
        return len(late) >= delivered

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
            rss = peak = store.resident_bytes()
            cpu, disk = store.processor_seconds(), store.written_bytes()
            for part in range(1, 101):
                await heartbeat.until(partial(reached, part * count // 100), pauses)
                peak = max(peak, store.resident_bytes())
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
