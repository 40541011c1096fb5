"""Ten thousand clients of one worker come, wait, are answered and leave, and its memory stays level.

By default this takes two minutes. ``PURGATORY_SOAK_SECONDS=3600`` makes it an hour, and
``PURGATORY_SOAK_CLIENTS`` sets the number of clients.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from pathlib import Path
from typing import Final

import pytest

from benchmarks.harness.processes import AVAILABLE, allow_open_files, resident_bytes
from tests.web.serving import UVICORN, Server, response, serving

SECONDS: Final = float(os.environ.get("PURGATORY_SOAK_SECONDS", "120"))
CLIENTS: Final = int(os.environ.get("PURGATORY_SOAK_CLIENTS", "10000"))

PATIENCE: Final = 300.0
"""Seconds for a step; the limit is for a hang alone. A poll waits for longer than a round takes."""

LEAVING: Final = 0.05
"""The share of the clients that leave and come again between two answers."""

MOST_GROWTH: Final = 1.05
"""Of the memory, from the middle third of the time to the last one. In the first one it fills its pools."""

pytestmark = [
    pytest.mark.asyncio(loop_factories=["asyncio"]),
    pytest.mark.real_time,
    pytest.mark.long,
    pytest.mark.timeout(SECONDS + 10 * PATIENCE),
    pytest.mark.skipif(not AVAILABLE, reason="needs /proc"),
]


class Visitor(asyncio.Protocol):
    """A client that asks on one connection, again and again, or follows a stream on it."""

    transport: asyncio.Transport

    def __init__(self, path: str) -> None:
        self.answers = 0
        self.left = False
        self._request = f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
        self._asks_again = path == "/poll"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        # Each answer is so short that it comes in one piece.
        if data.endswith((b"nothing", b"nothing\n\n\r\n")):
            self.answers += 1
            if self._asks_again:
                self.transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        assert self.left, "the server has closed a connection"

    def leave(self) -> None:
        self.left = True
        self.transport.abort()


async def come(server: Server, path: str) -> Visitor:
    loop = asyncio.get_running_loop()
    _, visitor = await loop.create_connection(lambda: Visitor(path), "127.0.0.1", server.port)
    return visitor


async def test_ten_thousand_clients_that_come_and_go_leave_nothing_in_memory(tmp_path: Path) -> None:
    # Some files of a process are no clients.
    allow_open_files(CLIENTS + 500)
    command = (*UVICORN, "--backlog", "4096", "--no-access-log", "--loop", "uvloop")
    with serving(command, tmp_path) as server:

        async def all_wait() -> None:
            await asyncio.to_thread(server.until, b"%d pending, %d cancelled" % (CLIENTS, left), PATIENCE)

        # Half of them poll, and half of them follow a stream.
        paths = ["/poll", "/stream"] * (CLIENTS // 2)
        left = 0
        visitors = [await come(server, path) for path in paths]
        memory: list[int] = []
        began = time.monotonic()
        while time.monotonic() - began < SECONDS or len(memory) < 9:
            await all_wait()
            memory.append(resident_bytes(server.process.pid))
            for index in random.sample(range(len(paths)), int(LEAVING * len(paths))):
                visitors[index].leave()
                left += 1
                visitors[index] = await come(server, paths[index])
            await all_wait()
            answers = sum(visitor.answers for visitor in visitors)
            released = await asyncio.to_thread(response, server.request("/release", "POST"))
            assert released.endswith(b"%d" % CLIENTS)
            async with asyncio.timeout(PATIENCE):
                while sum(visitor.answers for visitor in visitors) < answers + CLIENTS:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        for visitor in visitors:
            visitor.leave()
        await asyncio.to_thread(server.until, b"0 pending, %d cancelled" % (left + CLIENTS), PATIENCE)
        third = len(memory) // 3
        middle, last = statistics.median(memory[third : 2 * third]), statistics.median(memory[-third:])
        seconds = time.monotonic() - began
        print(f"{CLIENTS:,} clients, {seconds:.0f} s, {len(memory)} rounds, {left:,} have left:", end=" ")
        print(f"{middle / 2**20:.1f} MiB in the middle third, {last / 2**20:.1f} MiB in the last")
        assert last <= middle * MOST_GROWTH, memory
        assert "Traceback" not in server.log.read_text()
