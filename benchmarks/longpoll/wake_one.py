"""A record wakes one poll among many: that of its topic, or that of the client it is for."""

from __future__ import annotations

import asyncio
import random
import time
from functools import partial

from benchmarks import loops
from benchmarks.load.measurement import percentile
from benchmarks.longpoll.clients import Answer
from benchmarks.longpoll.crowd import PATIENCE, Crowd, gathered
from benchmarks.longpoll.servers import Running, running
from benchmarks.longpoll.ways import contenders
from benchmarks.question import Column, Question, Sample, Table


def wake_topic(loop: str, polls: int, records: int) -> Question:
    """The question, of so many records, one after the other, to so many topics with a poll each."""
    return Question(
        name="wake-topic",
        summary=f"what a record costs that wakes the poll of one topic among {polls:,}",
        contenders=contenders(lambda way: partial(measure, way, loop, polls, records, alone=False)),
        tables=(_table(f"A record to one of {polls:,} topics, with a poll each", records),),
        patience=600.0,
    )


def wake_client(loop: str, polls: int, records: int) -> Question:
    """The question, of so many records, each for one of so many clients that poll the same topic."""
    return Question(
        name="wake-client",
        summary=f"what a record costs that is for one of {polls:,} clients of the same topic",
        contenders=contenders(lambda way: partial(measure, way, loop, polls, records, alone=True)),
        tables=(_table(f"A record for one of {polls:,} clients of a topic", records),),
        patience=600.0,
    )


def measure(way: str, loop: str, polls: int, records: int, *, alone: bool) -> Sample:
    """Records for one client of one topic, or to topics of one poll. RuntimeError when others are woken."""
    with running(way, loop) as server:
        return loops.run(loop, _measure(server, polls, records, alone=alone))


async def _measure(server: Running, polls: int, records: int, *, alone: bool) -> Sample:
    chosen = random.Random(1).choices(range(polls), k=records)
    latencies: list[float] = []
    async with gathered(server, polls, (lambda _: "all") if alone else str) as crowd:
        answers = await crowd.all_poll()
        before = await crowd.figures()
        for turn, number in enumerate(chosen):
            latencies.append(await _wake(crowd, answers, number, str(turn), alone=alone) * 1e3)
        await crowd.all_wait()
        after = await crowd.figures()
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
    crowd: Crowd, answers: list[asyncio.Future[Answer]], number: int, value: str, *, alone: bool
) -> float:
    """Send a record, and have the client that gets it ask again; the seconds until it got it."""
    began = time.perf_counter()
    posted = crowd.post(number, value, alone=alone)
    async with asyncio.timeout(PATIENCE):
        _, answer = await asyncio.gather(posted, answers[number])
    if answer.content["records"] != [value]:
        raise RuntimeError(f"{value!r} was sent, and a client given {answer.content}")
    answers[number] = crowd.poll(number, answer.content["next"])
    return answer.at - began


def _table(title: str, records: int) -> Table:
    return Table(
        title=title,
        columns=(
            Column("processor_us", "CPU us/record"),
            Column("p50_ms", "p50 ms", spread=False),
            Column("p99_ms", "p99 ms", spread=False),
            Column("looks", "looks", spread=False),
        ),
        note=f"{records:,} records, one after the other, each with the answer to whom it wakes, who then "
        "asks again: the server's processor time for all of that; from sending the record to the client's "
        "answer; how often polls have looked for news, which the client that is woken does once, and again "
        "when it is back.",
    )
