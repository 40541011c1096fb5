"""A record wakes one poll among many: that of its topic, or that of the client it is for."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table, medians, percentile
from benchmarks.harness.setting import Setting
from benchmarks.suites.longpoll.clients import PATIENCE, Server, cases, connected

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
        cases=cases(setting.loop, polls, partial(measure, records=records, alone=False)),
        tables=(_table(f"A record to one of {polls:,} topics, with a poll each", records),),
        time_limit=600.0,
    )


def wake_client(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Records, each for one of the first of `sizes` clients that poll the same topic."""
    polls, records = sizes[0], min(RECORDS_TO_ALL, setting.times)
    return Benchmark(
        name="wake-client",
        summary=f"cost of a record for one of {polls:,} clients of the same topic",
        cases=cases(setting.loop, polls, partial(measure, records=records, alone=True)),
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


async def measure(server: Server, records: int, *, alone: bool) -> Sample:
    """Records for one client of one topic, or to topics of one poll. RuntimeError when others are woken."""
    chosen = random.Random(1).choices(range(server.polls), k=records)
    topics = ["all" if alone else str(number) for number in range(server.polls)]
    latencies: list[float] = []
    async with connected(server) as clients:
        answers = [clients.poll(number, topic) for number, topic in enumerate(topics)]
        await clients.all_wait()
        before = await clients.figures()
        for turn, number in enumerate(chosen):
            began = time.perf_counter()
            posted = clients.post(topics[number], str(turn), to=number if alone else None)
            async with asyncio.timeout(PATIENCE):
                _, (content, at) = await asyncio.gather(posted, answers[number])
            if content["records"] != [str(turn)]:
                raise RuntimeError(f"'{turn}' was sent, and the client got {content}")
            latencies.append((at - began) * 1e3)
            answers[number] = clients.poll(number, topics[number], content["next"])
        await clients.all_wait()
        after = await clients.figures()
        woken = sum(answer.done() for answer in answers)
    if woken:
        raise RuntimeError(f"{woken} clients were woken that no record was for")
    latencies.sort()
    return {
        "processor_us": (after["processor_seconds"] - before["processor_seconds"]) / records * 1e6,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "looks": (after["looks"] - before["looks"]) / records,
    }
