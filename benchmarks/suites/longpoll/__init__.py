"""Ten thousand long polls on one server, beside the usual way.

One small ASGI application on uvicorn (`server`), in a process of its own, for every way of waiting; only the
waiting differs. The usual way is an `asyncio.Condition` for each topic and `asyncio.wait_for`. The
clients are raw sockets in the process that measures. One record wakes all polls (`wake-all`), the clients ask
again at once (`wake-again`), or it wakes the one client it is for among all that poll the same topic
(`wake-client`). All but `wake-again` are measured with servers that do not notice that a client has left, and
with servers that do.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.harness import event_loop
from benchmarks.harness.benchmark import (
    Case,
    Parts,
    Sample,
    Setting,
    Table,
    benchmark,
    medians,
    percentiles,
    spreads,
)
from benchmarks.harness.event_loop import CollectorSetting
from benchmarks.harness.processes import allow_open_files, core_of_its_own, resident_bytes, started
from benchmarks.suites.longpoll.server import IN_FASTAPI, SECTIONS

# Seconds for a step that should take no time.
PATIENCE = 120.0
# Seconds after which a change shows in the memory.
SETTLED = 0.5
# The records of one measurement, each of which the usual way shows to all clients.
RECORDS = 50
SIZES = (2_000,), (10_000,)
SIZES_AGAIN = (2_000,), (5_000,)
_CONTENT_LENGTH = re.compile(rb"content-length: (\d+)")

Answer = tuple[Any, float]
"""The content of an answer, and when its last bytes came, by time.perf_counter()."""


@benchmark("wake-all", "cost of {n:,} long polls of one topic that one record wakes", *SIZES, 600.0)
def wake_all(setting: Setting) -> Parts:
    """The first size is the number of polls."""
    polls = setting.sizes[0]
    yield Table(
        f"One record wakes {polls:,} long polls",
        spreads(processor_us="CPU us/poll", p50_ms="p50 ms") + medians(p99_ms="p99 ms", stall_ms="stall ms"),
        "From the record until all clients have their answers: the server's processor time for "
        "each; from sending the record to a client's answer; and the longest for which the server's "
        "loop was held.",
    )
    yield Table(
        f"{polls:,} long polls that wait",
        spreads(poll_kib="KiB/poll"),
        "By how much the server has grown when all wait, since they were connected.",
    )
    yield Table(
        "The server's processor time for a poll, from its request to its answer: microseconds",
        spreads(round_trip_us="waits and is woken"),
    )
    yield from cases(setting, measure_all)


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
    if any(content != {"next": 1, "records": ["record"]} for content, _ in woken):
        raise RuntimeError("a client got an answer without the record")
    park, wake = (
        (end["processor_seconds"] - start["processor_seconds"]) / polls * 1e6
        for start, end in itertools.pairwise((idle, parked, after))
    )
    return {
        "processor_us": wake,
        **percentiles((at - began) * 1e3 for _, at in woken),
        "stall_ms": after["stall_ms"],
        "poll_kib": (waiting - connected_bytes) / polls / 1024,
        "round_trip_us": park + wake,
    }


@benchmark("wake-again", "{n:,} long polls that one record wakes, and that come back", *SIZES_AGAIN, 600.0)
def wake_again(setting: Setting) -> Parts:
    """The first size is the number of polls."""
    yield Table(
        f"One record wakes {setting.sizes[0]:,} long polls of FastAPI",
        spreads(p99_ms="p99 ms") + medians(p50_ms="p50 ms", stall_ms="stall ms"),
        "From sending the record to a client's answer, and the longest for which the server's loop was held "
        "until all had theirs, or waited again. The server has a core of its own.",
    )
    for section, again in (("nobody asks again", False), ("each client asks again at once", True)):
        for name, way in IN_FASTAPI.items():
            measure = partial(measure_again, again=again)
            yield Case(section, name, partial(on_server, setting, way.__name__, measure, "fastapi"))


async def measure_again(clients: Clients, again: bool) -> Sample:
    """One record for all clients, which ask `again` as soon as they have it."""
    answers = [clients.poll(number, "news") for number in range(len(clients.polling))]
    await clients.all_wait()
    await clients.figures(watch=True)
    if again:
        for number, answer in enumerate(answers):
            answer.add_done_callback(partial(clients.poll_again, number, "news"))
    with core_of_its_own(clients.process_id):
        began = time.perf_counter()
        await clients.post("news", "record")
        async with asyncio.timeout(PATIENCE):
            woken = await asyncio.gather(*answers)
        if again:
            await clients.all_wait()
    return {
        **percentiles((at - began) * 1e3 for _, at in woken),
        "stall_ms": (await clients.figures())["stall_ms"],
    }


@benchmark("wake-client", "cost of a record for one of {n:,} clients of the same topic", *SIZES, 600.0)
def wake_client(setting: Setting) -> Parts:
    """The first size is the number of polls."""
    records = min(RECORDS, setting.times)
    yield Table(
        f"A record for one of {setting.sizes[0]:,} clients of a topic",
        spreads(processor_us="CPU us/record") + medians(p50_ms="p50 ms", p99_ms="p99 ms", looks="looks"),
        f"{records:,} records, one after the other, each with the answer to the client that it wakes, "
        "which then polls again: the server's processor time for all of that; from sending the record to "
        "the client's answer; how often polls have looked for news, which the client that is woken does "
        "once, and again when it is back.",
    )
    yield from cases(setting, partial(measure_one, records=records))


async def measure_one(clients: Clients, records: int) -> Sample:
    """Records for one client of one topic. Raises RuntimeError when others are woken."""
    polls = len(clients.polling)
    latencies: list[float] = []
    answers = [clients.poll(number, "news") for number in range(polls)]
    await clients.all_wait()
    before = await clients.figures()
    for turn, number in enumerate(random.Random(1).choices(range(polls), k=records)):
        began = time.perf_counter()
        posted = clients.post("news", str(turn), to=number)
        async with asyncio.timeout(PATIENCE):
            _, (content, at) = await asyncio.gather(posted, answers[number])
        if content["records"] != [str(turn)]:
            raise RuntimeError(f"'{turn}' was sent, and the client got {content}")
        latencies.append((at - began) * 1e3)
        answers[number] = clients.poll(number, "news", content["next"])
    await clients.all_wait()
    after = await clients.figures()
    woken = sum(answer.done() for answer in answers)
    if woken:
        raise RuntimeError(f"{woken} clients were woken that no record was for")
    return {
        "processor_us": (after["processor_seconds"] - before["processor_seconds"]) / records * 1e6,
        **percentiles(latencies),
        "looks": (after["looks"] - before["looks"]) / records,
    }


def cases(setting: Setting, measure: Measure) -> Iterator[Case]:
    """All ways, in sections by what they do when a client leaves."""
    for section, ways in SECTIONS.items():
        for name, way in ways.items():
            yield Case(section, name, partial(on_server, setting, way.__name__, measure))


def on_server(setting: Setting, way: str, measure: Measure, *framework: str) -> Sample:
    """Measure a way on a new server."""
    polls = setting.sizes[0]
    # Some files of a process are no clients.
    allow_open_files(polls + 200)
    # The server is killed at the end: otherwise it would wait for the polls. The collector's pauses of this
    # process would count as the server's latency.
    with (
        started("benchmarks.suites.longpoll", way, setting.loop, *framework, kill=True) as (line, process_id),
        CollectorSetting.OFF.applied(),
    ):
        return event_loop.run(setting.loop, connect, line, process_id, polls, measure)


async def connect(line: str, process_id: int, polls: int, measure: Measure) -> Sample:
    """Connect so many clients to the server that printed this line, and measure."""
    host, port = line.split()
    loop = asyncio.get_running_loop()
    connections: list[Connection] = []
    try:
        for _ in range(polls + 1):
            _, connection = await loop.create_connection(Connection, host, int(port))
            connections.append(connection)
        poster, *polling = connections
        return await measure(Clients(process_id, poster, polling))
    finally:
        for connection in connections:
            connection.close()


@dataclass(frozen=True)
class Clients:
    """Connected clients, and one more that posts."""

    # The server's process.
    process_id: int
    poster: Connection
    polling: Sequence[Connection]

    def poll(self, number: int, topic: str, offset: int = 0) -> asyncio.Future[Answer]:
        # It waits longer than any measurement.
        target = f"/topics/{topic}?client={number}&offset={offset}&wait=600"
        return self.polling[number].ask(_request("GET", target))

    def poll_again(self, number: int, topic: str, answer: asyncio.Future[Answer]) -> None:
        """Ask for what comes after an answer. It is left alone."""
        if not answer.cancelled():
            self.poll(number, topic, answer.result()[0]["next"])

    async def post(self, topic: str, value: str, to: int | None = None) -> None:
        """Send a record, for one client or, without, for all."""
        query = "" if to is None else f"?to={to}"
        await self.poster.ask(_request("POST", f"/topics/{topic}{query}", value))

    async def all_wait(self) -> None:
        """Return when all clients wait. Raises TimeoutError when they do not in time."""
        async with asyncio.timeout(PATIENCE):
            while (await self.figures())["waiting"] < len(self.polling):  # noqa: ASYNC110  # asks the server
                await asyncio.sleep(0.05)

    async def figures(self, *, watch: bool = False) -> dict[str, float]:
        """The server's figures. Have it begin to `watch` its loop."""
        figures, _ = await self.poster.ask(_request("POST" if watch else "GET", "/figures"))
        return dict(figures)


Measure = Callable[[Clients], Coroutine[Any, Any, Sample]]


class Connection(asyncio.Protocol):
    """A connection that is kept, with one request at a time."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        """Send a request. The future gets its answer, or ConnectionError."""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer

    def close(self) -> None:
        """Close the connection, even with a request in progress."""
        self._answer.cancel()
        self.transport.abort()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        at = time.perf_counter()
        self._received += data
        content = _parse(self._received)
        if content is not None:
            self._received = b""
            if not self._answer.done():
                self._answer.set_result((content, at))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("the server closed a connection"))


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
