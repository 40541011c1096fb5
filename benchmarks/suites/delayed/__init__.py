"""How fast durable delayed messages are scheduled and cancelled, beside SQLite and Redis.

All stores are used from one event loop with the same payloads of 100 bytes. Their servers and threads count
in processor time. What polls does so every 10 ms.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

from benchmarks.harness.benchmark import Column, Parts, Sample, Setting, Table, benchmark
from benchmarks.harness.event_loop import run
from benchmarks.suites.delayed.polled import Redis, SharedSQLite, SQLite
from benchmarks.suites.delayed.store import DelayStore
from purgatory.delayed import DelayedMessages, Receipt

CALLERS = 64
PAYLOAD = b"x" * 100
# Seconds of the shortest and the longest delay; all between are as likely on a logarithmic scale.
SHORTEST, LONGEST = 1.0, 7200.0


class Purgatory(DelayStore):
    name = "purgatory.delayed"

    async def __aenter__(self) -> Self:
        self.messages = await DelayedMessages(self.directory / "messages", self.deliver).__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self.messages.__aexit__(*exception)

    async def schedule(self, payload: bytes, at: float) -> Receipt:
        return await self.messages.schedule(payload, at=at)

    async def cancel(self, receipt: Receipt) -> bool:
        return await self.messages.cancel(receipt)


STORES: tuple[type[DelayStore], ...] = (Purgatory, SQLite, SharedSQLite, Redis)


@benchmark("delayed-rate", "delayed messages scheduled and cancelled", (20_000,), (100_000,), time_limit=60.0)
def rate(setting: Setting) -> Parts:
    """The first size is the number of messages. A store whose server is not installed has no figures."""
    columns = ("us", "wall us"), ("per_s", "per second"), ("cpu_us", "CPU us"), ("disk", "bytes written")
    for verb in ("schedule", "cancel"):
        yield Table(
            f"To {verb} a message",
            tuple(Column(f"{verb}_{metric}", heading, spread=metric == "us") for metric, heading in columns),
            f"{CALLERS} callers, each of which waits until the disk has it. Delays are from 1 s to 2 h, "
            "log-uniform; what becomes due is delivered meanwhile. Then all are cancelled, in random order.",
        )
    yield from setting.cases("all on one loop", STORES, partial(measure, setting), interpreted=False)


def measure(setting: Setting, kind: type[DelayStore]) -> Sample:
    if not kind.available:
        return {}
    with tempfile.TemporaryDirectory(dir=setting.directory) as directory:
        return run(setting.loop, _rate, kind, Path(directory), setting.sizes[0])


async def _rate(kind: type[DelayStore], directory: Path, count: int) -> Sample:
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
            await call(each, arguments)
            seconds = time.perf_counter() - began
            cpu, disk = store.processor_seconds() - cpu, store.written_bytes() - disk
            figures = {"us": seconds * 1e6, "cpu_us": cpu * 1e6, "disk": disk}
            sample.update({f"{verb}_{metric}": figure / count for metric, figure in figures.items()})
            sample[f"{verb}_per_s"] = count / seconds
        if cancelled < count / 2:
            raise AssertionError(f"{kind.name}: only {cancelled} of {count} could be cancelled")
        return sample


def delays() -> Iterator[float]:
    """Without end, and the same each time."""
    choice = random.Random(1)
    while True:
        yield SHORTEST * (LONGEST / SHORTEST) ** choice.random()


async def call(each: Callable[[Any], Awaitable[object]], arguments: Iterable[Any]) -> None:
    """Each of the callers takes the next argument when it has its answer."""
    left = iter(arguments)

    async def caller() -> None:
        for argument in left:
            await each(argument)

    async with asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(caller())
