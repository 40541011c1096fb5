"""How fast messages are scheduled, and cancelled."""

from __future__ import annotations

import itertools
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness.benchmark import Column, Parts, Sample, Setting, Table, benchmark
from benchmarks.suites.delayed.callers import CALLERS, PAYLOAD, Kind, call, cases, delays, in_directory
from benchmarks.suites.delayed.stores import STORES


@benchmark("delayed-rate", "delayed messages scheduled and cancelled", (20_000,), (100_000,), time_limit=60.0)
def rate(setting: Setting) -> Parts:
    """The first size is the number of messages."""
    columns = ("us", "wall us"), ("per_s", "per second"), ("cpu_us", "CPU us"), ("disk", "bytes written")
    for verb in ("schedule", "cancel"):
        yield Table(
            f"To {verb} a message",
            tuple(Column(f"{verb}_{metric}", heading, spread=metric == "us") for metric, heading in columns),
            f"{CALLERS} callers, each of which waits until the disk has it. Delays are from 1 s to 2 h, "
            "log-uniform; what becomes due is delivered meanwhile. Then all are cancelled, in random order. "
            "Redis with everysec does not wait for the disk. NATS syncs each message for itself.",
        )
    yield from cases(setting, STORES, partial(measure_rate, setting))


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
        steps = ("schedule", schedule, itertools.islice(delays(), count)), ("cancel", cancel, shuffled)
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
