"""Clients that poll, and the server that each of them has for itself."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.harness import connections, event_loop
from benchmarks.harness.benchmark import Case, Sample
from benchmarks.harness.connections import Answer, Connection
from benchmarks.harness.event_loop import CollectorSetting
from benchmarks.harness.processes import allow_open_files, started
from benchmarks.suites.longpoll.ways import SECTIONS

# Open files of a process that are no clients.
OTHERS = 200
# Seconds for a step that should take no time.
PATIENCE = 120.0
# Seconds between two looks whether all polls wait.
AGAIN = 0.05
# The timeout of a poll in seconds, longer than any measurement.
WAIT = 600
_CONTENT_LENGTH = re.compile(rb"content-length: (\d+)")


@dataclass(frozen=True)
class Server:
    """A running server, and how many clients are to poll it."""

    address: tuple[str, int]
    process_id: int
    polls: int


def cases(
    loop: str, polls: int, measure: Callable[[Server], Coroutine[Any, Any, Sample]]
) -> tuple[Case, ...]:
    """All ways, in sections by what they do when a client leaves. Each is measured on a new server."""
    return tuple(
        Case(section, name, partial(_on_new_server, way.__name__, loop, polls, measure))
        for section, ways in SECTIONS.items()
        for name, way in ways.items()
    )


def _on_new_server(
    way: str, loop: str, polls: int, measure: Callable[[Server], Coroutine[Any, Any, Sample]]
) -> Sample:
    """Raises RuntimeError when the server does not start, OSError where so many files may not be open."""
    allow_open_files(polls + OTHERS)
    # The server is killed at the end: otherwise it would wait for the polls. The collector's pauses of this
    # process would count as the server's latency.
    with (
        started("benchmarks.suites.longpoll.server", way, loop, kill=True) as (line, process_id),
        CollectorSetting.OFF.applied(),
    ):
        host, port = line.split()
        return event_loop.run(loop, measure(Server((host, int(port)), process_id, polls)))


class Clients:
    """Connected clients, and one more that posts."""

    def __init__(self, poster: Connection, clients: list[Connection]) -> None:
        self._poster = poster
        self._clients = clients

    def poll(self, number: int, topic: str, offset: int = 0) -> asyncio.Future[Answer]:
        """Have one client ask for its news."""
        target = f"/topics/{topic}?client={number}&offset={offset}&wait={WAIT}"
        return self._clients[number].ask(_request("GET", target))

    async def post(self, topic: str, value: str, to: int | None = None) -> None:
        """Send a record, for one client or, without, for all."""
        query = "" if to is None else f"?to={to}"
        await self._poster.ask(_request("POST", f"/topics/{topic}{query}", value))

    async def all_wait(self) -> None:
        """Return when all clients wait. Raises TimeoutError when they do not in time."""
        async with asyncio.timeout(PATIENCE):
            while (await self.figures())["waiting"] < len(self._clients):  # noqa: ASYNC110  # asks the server
                await asyncio.sleep(AGAIN)

    async def figures(self, *, watch: bool = False) -> dict[str, float]:
        """The server's figures. Have it `watch` its loop until they are asked for again."""
        figures: dict[str, float]
        figures, _ = await self._poster.ask(_request("POST" if watch else "GET", "/figures"))
        return figures


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Clients]:
    """The clients, connected and nothing more."""
    async with connections.connected(server.address, server.polls + 1, _parse) as (poster, *clients):
        yield Clients(poster, clients)


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
