"""The three designs of the example's delay service, each with three instances, on the example's brokers."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio

from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.event_loop import run
from benchmarks.suites.delayed.callers import LONGEST, SHORTEST
from benchmarks.suites.delayed.processes import Processes
from examples.delayed.demo.process import Brokers
from examples.delayed.demo.round import Outcome, Plan, Round
from examples.delayed.service import DESIGNS
from examples.delayed.topics import LEVELS

# Delays and levels are divided by this: two hours take half a minute.
COMPRESSION = 240
# Records that are sent in a second.
RATE = 500
# Seconds between two looks at the memory.
LOOK = 0.2


@benchmark(
    "delayed-designs", "{n:,} delayed records in Kafka, three designs", (5_000,), (100_000,), time_limit=150.0
)
def designs(setting: Setting) -> Parts:
    """The first size is the number of records."""
    count = setting.sizes[0]
    yield Table(
        "From the due time until a consumer has the record: milliseconds",
        spreads(p50_ms="p50") + medians(p99_ms="p99", max_ms="max", early="early", twice="twice"),
        f"{count:,} records, {RATE} per second. Time is compressed: delays from 1 s to 2 h, log-uniform, and "
        f"the levels from 5 s to 2 h are divided by {COMPRESSION}. So in real time, rounding up to a level "
        f"costs {COMPRESSION} times as much, and requeue writes a record back for as much longer. The slots "
        "of the wheel remain one second. Each record has arrived. What is pending is due in an hour or two.",
    )
    yield Table(
        "What the service takes for each record: microseconds of processor time",
        spreads(service_us="instances") + medians(brokers_us="brokers", written="bytes written"),
        "From the first record until all have arrived. Bytes are those that the three instances have written "
        "to their files and to Kafka, without the replicas there.",
    )
    yield Table(
        "What is kept: MiB of memory",
        spreads(service_mib="instances") + medians(brokers_mib="brokers", disk="B of disk/pending"),
        "By how much the processes have grown at most; the brokers keep their logs in memory. Of the disk: "
        "what the files of all instances take at the end, for each record that is still pending.",
    )
    for backlog in (0, count):
        section = f"{backlog:,} more pending" if backlog else "nothing else pending"
        for design in reversed(DESIGNS):
            yield Case(section, design, partial(measure, setting, plan_of(design, count, backlog)))


def plan_of(design: str, count: int, backlog: int) -> Plan:
    return Plan(
        design,
        count,
        count / RATE,
        least=SHORTEST / COMPRESSION,
        most=LONGEST / COMPRESSION,
        levels=tuple(level / 1000 / COMPRESSION for level in LEVELS),
        backlog=backlog,
        kill=False,
        session_timeout=10.0,
    )


def measure(setting: Setting, plan: Plan) -> Sample:
    with tempfile.TemporaryDirectory(dir=setting.directory) as directory:
        sample: Sample = run(setting.loop, _measure, plan, Path(directory))
        return sample


async def _measure(plan: Plan, directory: Path) -> Sample:
    used: dict[str, float] = {}
    async with Brokers.running(directory, durable=False) as brokers:
        round = Round(plan, brokers, directory)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch_all, round, brokers, used)
            outcome = await round.run()
            tasks.cancel_scope.cancel()
    sample = lateness(outcome) | used
    sample["written"] += round.written_bytes / plan.messages
    if plan.backlog:
        files = [path.stat() for name in round.instances for path in (directory / name).rglob("*")]
        sample["disk"] = sum(each.st_blocks * 512 for each in files) / plan.backlog
    return sample


def lateness(outcome: Outcome) -> dict[str, float]:
    """Raises RuntimeError if a record is missing or has come early, or if an instance has failed."""
    if outcome.faults:
        raise RuntimeError(f"{outcome.design}: {'; '.join(outcome.faults)}")
    found = outcome.figures
    return {
        "p50_ms": found.p50,
        "p99_ms": found.p99,
        "max_ms": found.worst,
        "early": found.early,
        "twice": found.duplicates,
    }


async def _watch_all(round: Round, brokers: Brokers, used: dict[str, float]) -> None:
    await round.started.wait()
    instances = Processes([each.process.pid for each in round.instances.values()])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch, round, instances, "service", used)
        tasks.start_soon(watch, round, Processes([brokers.process_id]), "brokers", used)
        await round.loading.wait()
        used["written"] = -round.written_bytes / round.plan.messages


async def watch(round: Round, processes: Processes, name: str, used: dict[str, float]) -> None:
    """Note by how much processes grow at most, and their processor time from when the load begins."""
    # The outcome tells of a process that has ended.
    with suppress(OSError):
        before = peak = processes.resident_bytes()
        for event in (round.loading, round.arrived):
            began = processes.processor_seconds()
            while not event.is_set():
                with anyio.move_on_after(LOOK):
                    await event.wait()
                peak = max(peak, processes.resident_bytes())
        used[f"{name}_mib"] = (peak - before) / 2**20
        used[f"{name}_us"] = (processes.processor_seconds() - began) / round.plan.messages * 1e6
