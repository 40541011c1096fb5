"""Clients that poll a server of their own, and what it costs to wake all of them, or one."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.harness import event_loop
from benchmarks.harness.benchmark import Benchmark, Case, Column, Sample, Table, medians, percentile
from benchmarks.harness.connections import Answer, Connection, connected
from benchmarks.harness.event_loop import CollectorSetting
from benchmarks.harness.processes import allow_open_files, resident_bytes, started
from benchmarks.harness.setting import Setting
from benchmarks.suites.longpoll.ways import SECTIONS

# Open files of a process that are no clients.
OTHERS = 200
# Seconds for a step that should take no time.
PATIENCE = 120.0
# Seconds after which a change shows in the memory.
SETTLED = 0.5
# Seconds between two looks whether all polls wait.
AGAIN = 0.05
# The timeout of a poll in seconds, longer than any measurement.
WAIT = 600
# The records of one measurement in a quick and in a full run, and of one that the usual way shows to all
# clients.
RECORDS = (500, 2000)
RECORDS_TO_ALL = 50
_CONTENT_LENGTH = re.compile(rb"content-length: (\d+)")


def wake_all(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """The first of `sizes` is the number of polls."""
    polls = sizes[0]
    return Benchmark(
        name="wake-all",
        summary=f"cost of {polls:,} long polls of one topic that one record wakes",
        cases=cases(setting.loop, polls, measure_all),
        tables=(
            Table(
                f"One record wakes {polls:,} long polls",
                (
                    Column("processor_us", "CPU us/poll"),
                    Column("p50_ms", "p50 ms"),
                    *medians(p99_ms="p99 ms", stall_ms="stall ms"),
                ),
                "From the record until all clients have their answers: the server's processor time for "
                "each; from sending the record to a client's answer; and the longest for which the server's "
                "loop was held.",
            ),
            Table(
                f"{polls:,} long polls that wait",
                (Column("poll_kib", "KiB/poll"), Column("connection_kib", "KiB/connection")),
                "By how much the server has grown when all wait; and before, when they were connected "
                "and nothing more.",
            ),
            Table(
                "The server's processor time for a poll: microseconds",
                (
                    Column("round_trip_us", "waits and is woken"),
                    *medians(park_us="until it waits", ready_us="need not wait"),
                ),
                "The last is a poll that is answered at once, because there is news already; that is "
                "HTTP, in the main.",
            ),
        ),
        time_limit=600.0,
    )


async def measure_all(clients: Clients) -> Sample:
    """One record, and all steps before it. Raises RuntimeError when it does not wake all clients."""
    polls = len(clients.polling)
    await asyncio.sleep(SETTLED)
    connected_bytes = resident_bytes(clients.process_id)
    idle = await clients.figures()
    answers = [clients.poll(number, "news") for number in range(polls)]
    await clients.all_wait()
    await asyncio.sleep(SETTLED)
    waiting = resident_bytes(clients.process_id)
    parked = await clients.figures(watch=True)
    began = time.perf_counter()
    await clients.post("news", "record")
    async with asyncio.timeout(PATIENCE):
        woken = await asyncio.gather(*answers)
    after = await clients.figures()
    # All poll once more, now that there is news.
    await asyncio.gather(*(clients.poll(number, "news") for number in range(polls)))
    answered = await clients.figures()
    if any(content != {"next": 1, "records": ["record"]} for content, _ in woken):
        raise RuntimeError("a client got an answer without the record")
    park, wake, ready = (
        (end["processor_seconds"] - start["processor_seconds"]) / polls * 1e6
        for start, end in itertools.pairwise((idle, parked, after, answered))
    )
    latencies = sorted((at - began) * 1e3 for _, at in woken)
    return {
        "processor_us": wake,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "stall_ms": after["stall_ms"],
        "poll_kib": (waiting - connected_bytes) / polls / 1024,
        "connection_kib": (connected_bytes - clients.bytes_alone) / polls / 1024,
        "round_trip_us": park + wake,
        "park_us": park,
        "ready_us": ready,
    }


def wake_topic(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Records, one after the other, to the first of `sizes` topics with a poll each."""
    polls, records = sizes[0], min(RECORDS[setting.full], setting.times)
    return Benchmark(
        name="wake-topic",
        summary=f"cost of a record that wakes the poll of one topic among {polls:,}",
        cases=cases(setting.loop, polls, partial(measure_one, records=records, alone=False)),
        tables=(_one_table(f"A record to one of {polls:,} topics, with a poll each", records),),
        time_limit=600.0,
    )


def wake_client(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Records, each for one of the first of `sizes` clients that poll the same topic."""
    polls, records = sizes[0], min(RECORDS_TO_ALL, setting.times)
    return Benchmark(
        name="wake-client",
        summary=f"cost of a record for one of {polls:,} clients of the same topic",
        cases=cases(setting.loop, polls, partial(measure_one, records=records, alone=True)),
        tables=(_one_table(f"A record for one of {polls:,} clients of a topic", records),),
        time_limit=600.0,
    )


def _one_table(title: str, records: int) -> Table:
    return Table(
        title,
        (Column("processor_us", "CPU us/record"), *medians(p50_ms="p50 ms", p99_ms="p99 ms", looks="looks")),
        f"{records:,} records, one after the other, each with the answer to the client that it wakes, "
        "which then polls again: the server's processor time for all of that; from sending the record to "
        "the client's answer; how often polls have looked for news, which the client that is woken does "
        "once, and again when it is back.",
    )


async def measure_one(clients: Clients, records: int, *, alone: bool) -> Sample:
    """Records for one client of one topic, or to topics of one poll. RuntimeError when others are woken."""
    polls = len(clients.polling)
    chosen = random.Random(1).choices(range(polls), k=records)
    topics = ["all" if alone else str(number) for number in range(polls)]
    latencies: list[float] = []
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


def cases(
    loop: str, polls: int, measure: Callable[[Clients], Coroutine[Any, Any, Sample]]
) -> tuple[Case, ...]:
    """All ways, in sections by what they do when a client leaves. Each is measured on a new server."""

    def measured(way: str) -> Sample:
        allow_open_files(polls + OTHERS)
        # The server is killed at the end: otherwise it would wait for the polls. The collector's pauses of
        # this process would count as the server's latency.
        with (
            started("benchmarks.suites.longpoll.server", way, loop, kill=True) as (line, process_id),
            CollectorSetting.OFF.applied(),
        ):
            return event_loop.run(loop, connect(line, process_id))

    async def connect(line: str, process_id: int) -> Sample:
        host, port = line.split()
        await asyncio.sleep(SETTLED)
        alone = resident_bytes(process_id)
        async with connected((host, int(port)), polls + 1, _parse) as (poster, *polling):
            return await measure(Clients(process_id, alone, poster, polling))

    return tuple(
        Case(section, name, partial(measured, way.__name__))
        for section, ways in SECTIONS.items()
        for name, way in ways.items()
    )


@dataclass(frozen=True)
class Clients:
    """Connected clients, and one more that posts."""

    # The server's process, and its bytes in memory before they were connected.
    process_id: int
    bytes_alone: int
    poster: Connection
    polling: Sequence[Connection]

    def poll(self, number: int, topic: str, offset: int = 0) -> asyncio.Future[Answer]:
        """Have one client ask for its news."""
        target = f"/topics/{topic}?client={number}&offset={offset}&wait={WAIT}"
        return self.polling[number].ask(_request("GET", target))

    async def post(self, topic: str, value: str, to: int | None = None) -> None:
        """Send a record, for one client or, without, for all."""
        query = "" if to is None else f"?to={to}"
        await self.poster.ask(_request("POST", f"/topics/{topic}{query}", value))

    async def all_wait(self) -> None:
        """Return when all clients wait. Raises TimeoutError when they do not in time."""
        async with asyncio.timeout(PATIENCE):
            while (await self.figures())["waiting"] < len(self.polling):  # noqa: ASYNC110  # asks the server
                await asyncio.sleep(AGAIN)

    async def figures(self, *, watch: bool = False) -> dict[str, float]:
        """The server's figures. Have it `watch` its loop until they are asked for again."""
        figures: dict[str, float]
        figures, _ = await self.poster.ask(_request("POST" if watch else "GET", "/figures"))
        return figures


def _request(method: str, target: str, body: str = "") -> bytes:
    head = f"{method} {target} HTTP/1.1\r\nHost: benchmark\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def _parse(received: bytes) -> Any:
    """The content of an answer, or None until it is whole. Raises ConnectionError when it tells an error."""
    head, _, body = received.partition(b"\r\n\r\n")
    length = _CONTENT_LENGTH.search(head)
    if length is None or len(body) < int(length[1]):
        return None
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ConnectionError(f"the server answered {head.decode()!r}")
    return json.loads(body)
