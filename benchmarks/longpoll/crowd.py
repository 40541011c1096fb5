"""Many clients that poll, and the one that posts."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from benchmarks.longpoll.clients import Answer, Client, close, connect
from benchmarks.longpoll.servers import Running

# Seconds for whatever should take no time.
PATIENCE = 120.0
# Seconds between two looks whether all polls wait.
AGAIN = 0.05
# Of a poll, in seconds: longer than any measurement.
WAIT = 600


@dataclass(frozen=True, slots=True)
class Figures:
    """What a server says of itself: since it began, and the worst stall since it was last told to watch."""

    waiting: int
    looks: int
    stall_ms: float
    processor_seconds: float


class Crowd:
    """Clients that are connected, each with the topic that `topic_of` gives its number."""

    def __init__(self, clients: list[Client], poster: Client, topic_of: Callable[[int], str]) -> None:
        self._clients = clients
        self._poster = poster
        self._topic_of = topic_of

    def poll(self, number: int, offset: int) -> asyncio.Future[Answer]:
        """Have one client ask for what is new to it."""
        query = urlencode({"client": number, "offset": offset, "wait": WAIT})
        return self._clients[number].ask("GET", f"/topics/{self._topic_of(number)}?{query}")

    async def post(self, number: int, value: str, *, alone: bool) -> Answer:
        """A record to the topic of a client, for that client `alone` or for everybody."""
        query = f"?to={number}" if alone else ""
        return await self._poster.ask("POST", f"/topics/{self._topic_of(number)}{query}", value)

    async def all_poll(self) -> list[asyncio.Future[Answer]]:
        """Have all of them ask from the beginning. Returns when they wait."""
        answers = [self.poll(number, 0) for number in range(len(self._clients))]
        await self.all_wait()
        return answers

    async def all_wait(self) -> None:
        """Return when all polls have come to where they wait. TimeoutError when they don't."""
        deadline = time.monotonic() + PATIENCE
        while (waiting := (await self.figures()).waiting) < len(self._clients):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"of {len(self._clients)} polls, {waiting} wait after {PATIENCE:g} seconds"
                )
            await asyncio.sleep(AGAIN)

    async def watch(self) -> None:
        """Have the server watch its loop, until the next `figures`."""
        await self._poster.ask("POST", "/figures")

    async def figures(self) -> Figures:
        """The server's figures, as they are now."""
        content: dict[str, Any] = (await self._poster.ask("GET", "/figures")).content
        return Figures(**content)


@asynccontextmanager
async def gathered(server: Running, number: int, topic_of: Callable[[int], str]) -> AsyncIterator[Crowd]:
    """So many clients, connected and nothing more. OSError where so many files may not be open."""
    poster, *clients = await connect(server, number + 1)
    # The collector's pauses of this process would be told as the server's latency.
    gc.collect()
    gc.disable()
    try:
        yield Crowd(clients, poster, topic_of)
    finally:
        gc.enable()
        close([poster, *clients])
