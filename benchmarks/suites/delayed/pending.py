"""What many pending messages take in memory and on the disk, and how fast the store is open again."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.processes import resident_bytes
from benchmarks.suites.delayed.callers import CALLERS, PAYLOAD, SETTLED, Kind, call, cases, delays
from benchmarks.suites.delayed.stores import FAST


@benchmark("delayed-pending", "{n:,} delayed messages pending", (100_000,), (1_000_000,), time_limit=120.0)
def pending(setting: Setting) -> Parts:
    """The first size is the number of messages."""
    yield Table(
        f"{setting.sizes[0]:,} messages pending, with delays from 1 s to 2 h",
        spreads(rss_mib="MiB of memory")
        + medians(peak_mib="at most", memory="B/message", disk="B of disk/message", files="files"),
        "By how much the processes have grown since the store was opened, when so many are pending, and at "
        "most until then; the files' blocks, and how many files. What is due meanwhile is delivered.",
    )
    yield Table(
        f"Opened again with {setting.sizes[0]:,} pending: seconds until the first message is delivered",
        spreads(killed_s="after kill -9", closed_s="after closing")
        + medians(killed_cpu_s="CPU s", reopened_mib="MiB of memory"),
        "Killed while messages are scheduled. Something is due already when it is opened. Processor time is "
        "that of the process, after kill -9.",
    )
    yield from cases(setting, FAST, partial(measure_pending, setting))


def measure_pending(setting: Setting, kind: Kind) -> Sample:
    with tempfile.TemporaryDirectory(dir=setting.directory) as directory:
        sample: dict[str, float] = {}
        for step in ("fill", "killed", "closed"):
            module = [sys.executable, "-m", "benchmarks.suites.delayed"]
            command = [*module, setting.loop, step, kind.name, directory, str(setting.sizes[0])]
            finished = subprocess.run(command, stdout=subprocess.PIPE, check=False)
            sample |= json.loads(finished.stdout)
        return sample


async def fill(kind: Kind, directory: Path, count: int) -> None:
    """Schedule messages until so many are pending, print the figures, and be killed while there are more."""
    before = peak = scheduled = delivered = 0

    async def deliver(id: str, payload: bytes, due: float) -> None:
        nonlocal delivered
        delivered += 1

    async def schedule(delay: float) -> None:
        nonlocal peak, scheduled
        await store.schedule(PAYLOAD, time.time() + delay)
        scheduled += 1
        if scheduled % 10_000 == 0:
            peak = max(peak, store.resident_bytes())
        if scheduled - delivered == count:
            print(json.dumps(figures(directory, store.resident_bytes() - before, peak - before, count)))
            sys.stdout.flush()
            store.kill()

    async with kind(directory, deliver) as store:
        before = store.resident_bytes()
        await call(CALLERS, schedule, delays())


def figures(directory: Path, rss: int, peak: int, count: int) -> Sample:
    files = [path.stat() for path in directory.rglob("*") if path.is_file()]
    disk = sum(each.st_blocks * 512 for each in files)
    mib = {"rss_mib": rss / 2**20, "peak_mib": max(rss, peak) / 2**20}
    return {**mib, "memory": rss / count, "disk": disk / count, "files": len(files)}


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
