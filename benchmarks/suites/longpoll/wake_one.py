"""A record wakes one poll among many: that of its topic, or that of the client it is for."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.harness import event_loop
from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table, medians, percentile
from benchmarks.harness.setting import Setting
from benchmarks.suites.longpoll.clients import PATIENCE, Answer, Clients, Server, connected, running
from benchmarks.suites.longpoll.ways import cases

# The records of one measurement in a quick and in a full run, and of one that the usual way shows to all
# clients.
RECORDS = (500, 2000)
RECORDS_TO_ALL = 50


def wake_topic(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Records, one after the other, to the first of `sizes` topics with a poll each."""
    polls, records = sizes[0], min(RECORDS[setting.full], setting.times)
    return Benchmark(
        name="wake-topic",
        summary=f"cost of a record that wakes the poll of one topic among {polls:,}",
        cases=cases(lambda way: partial(measure, way, setting.loop, polls, records, alone=False)),
        tables=(_table(f"A record to one of {polls:,} topics, with a poll each", records),),
        time_limit=600.0,
    )


def wake_client(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Records, each for one of the first of `sizes` clients that poll the same topic."""
    polls, records = sizes[0], min(RECORDS_TO_ALL, setting.times)
    return Benchmark(
        name="wake-client",
        summary=f"cost of a record for one of {polls:,} clients of the same topic",
        cases=cases(lambda way: partial(measure, way, setting.loop, polls, records, alone=True)),
        tables=(_table(f"A record for one of {polls:,} clients of a topic", records),),
        time_limit=600.0,
    )


def _table(title: str, records: int) -> Table:
    return Table(
        title,
        (Column("processor_us", "CPU us/record"), *medians(p50_ms="p50 ms", p99_ms="p99 ms", looks="looks")),
        f"{records:,} records, one after the other, each with the answer to the client that it wakes, "
        "which then polls again: the server's processor time for all of that; from sending the record to "
        "the client's answer; how often polls have looked for news, which the client that is woken does "
        "once, and again when it is back.",
    )


def measure(way: str, loop: str, polls: int, records: int, *, alone: bool) -> Sample:
    """Records for one client of one topic, or to topics of one poll. RuntimeError when others are woken."""
    with running(way, loop) as server:
        return event_loop.run(loop, _measure(server, polls, records, alone=alone))


async def _measure(server: Server, polls: int, records: int, *, alone: bool) -> Sample:
    chosen = random.Random(1).choices(range(polls), k=records)
    latencies: list[float] = []
    async with connected(server, polls, (lambda _: "all") if alone else str) as clients:
        answers = await clients.all_poll()
        before = await clients.figures()
        for turn, number in enumerate(chosen):
            latencies.append(await _wake(clients, answers, number, str(turn), alone=alone) * 1e3)
        await clients.all_wait()
        after = await clients.figures()
        woken = sum(answer.done() for answer in answers)
    if woken:
        raise RuntimeError(f"{woken} clients were woken that no record was for")
    latencies.sort()
    return {
        "processor_us": (after.processor_seconds - before.processor_seconds) / records * 1e6,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "looks": (after.looks - before.looks) / records,
    }


async def _wake(
    clients: Clients, answers: list[asyncio.Future[Answer]], number: int, value: str, *, alone: bool
) -> float:
    """Send a record, and have the client that gets it poll again; the seconds until the client had it."""
    began = time.perf_counter()
    posted = clients.post(number, value, alone=alone)
    async with asyncio.timeout(PATIENCE):
        _, answer = await asyncio.gather(posted, answers[number])
    if answer.content["records"] != [value]:
        raise RuntimeError(f"{value!r} was sent, and the client got {answer.content}")
    answers[number] = clients.poll(number, answer.content["next"])
    return answer.at - began
