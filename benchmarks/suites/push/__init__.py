"""What a client costs that waits by long poll, by server-sent events or by WebSocket, and each message to it.

One application on uvicorn, in a process of its own, serves all three. The clients are raw sockets in the
process that measures. All of them get each record, and the next one is sent when all wait again.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection
from typing import Any

from benchmarks.harness import event_loop
from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, benchmark, spreads
from benchmarks.harness.event_loop import CollectorSetting
from benchmarks.harness.processes import allow_open_files, resident_bytes, started

# Seconds for a step that should take no time.
PATIENCE = 120.0
# Seconds after which a change shows in the memory.
SETTLED = 0.5
# The records of one measurement.
RECORDS = 20
RECORD = b"a record"
WAYS = {"long poll": "/poll?offset={offset}", "server-sent events": "/stream", "WebSocket": "/socket"}
_NEXT = re.compile(rb"\r\nnext: (\d+)")


@benchmark("push", "cost of {n:,} clients that wait, and of a message to each", (2_000,), (10_000,), 600.0)
def push(setting: Setting) -> Parts:
    """The first size is the number of clients."""
    yield Table(
        f"{setting.sizes[0]:,} clients, and records for all of them",
        spreads(message_us="CPU us/message", client_kib="KiB/client"),
        f"{min(RECORDS, setting.times)} records, one after the other: the server's processor time for a "
        "message to a client, with the next request of a long poll; and by how much the server grows with a "
        "client that waits, its connection included.",
    )
    yield from cases(setting)


def cases(setting: Setting) -> Iterator[Case]:
    for name, target in WAYS.items():
        yield Case("", name, partial(on_server, setting, target))


def on_server(setting: Setting, target: str) -> Sample:
    """Measure a way on a new server."""
    clients = setting.sizes[0]
    # Some files of a process are no clients.
    allow_open_files(clients + 200)
    with (
        started("benchmarks.suites.push", setting.loop, kill=True) as (line, process_id),
        CollectorSetting.OFF.applied(),
    ):
        return event_loop.run(setting.loop, measure, Server(line, process_id), target, clients, setting.times)


async def measure(server: Server, target: str, count: int, times: int) -> Sample:
    """Connect the clients, and send records. Raises TimeoutError when a client does not get one."""
    records = min(RECORDS, times)
    loop = asyncio.get_running_loop()
    await asyncio.sleep(SETTLED)
    alone = resident_bytes(server.process_id)
    clients: list[Client] = []
    try:
        for _ in range(count):
            _, client = await loop.create_connection(partial(Client, target), server.host, server.port)
            clients.append(client)
        await server.all_wait(count)
        await asyncio.sleep(SETTLED)
        waiting = resident_bytes(server.process_id)
        before = (await server.figures())["processor_seconds"]
        for _ in range(records):
            await server.ask("POST", "/records", RECORD)
            await server.all_wait(count)
        after = (await server.figures())["processor_seconds"]
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(client.has_got(records) for client in clients))
    finally:
        for client in clients:
            client.transport.abort()
    return {
        "message_us": (after - before) / count / records * 1e6,
        "client_kib": (waiting - alone) / count / 1024,
    }


class Server:
    """The server that has printed this line, as the process that measures asks it."""

    def __init__(self, line: str, process_id: int) -> None:
        self.host, port = line.split()
        self.port = int(port)
        self.process_id = process_id

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Ask on a new connection, in a thread."""

        def answer() -> bytes:
            connection = HTTPConnection(self.host, self.port, timeout=PATIENCE)
            try:
                connection.request(method, path, body, {"Connection": "close"})
                return connection.getresponse().read()
            finally:
                connection.close()

        return await asyncio.to_thread(answer)

    async def figures(self) -> dict[str, float]:
        return dict(json.loads(await self.ask("GET", "/figures")))

    async def all_wait(self, clients: int) -> None:
        """Return when all clients wait. Raises TimeoutError when they do not in time."""
        async with asyncio.timeout(PATIENCE):
            while (await self.figures())["waiting"] < clients:  # noqa: ASYNC110  # asks the server
                await asyncio.sleep(0.05)


class Client(asyncio.Protocol):
    """A client that waits by one of the ways, and counts the records that it gets."""

    transport: asyncio.Transport

    def __init__(self, target: str) -> None:
        self._target = target
        self._received = b""
        self._records = 0
        self._got = asyncio.Event()

    async def has_got(self, records: int) -> None:
        while self._records < records:
            self._got.clear()
            await self._got.wait()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._ask(0)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._received.rstrip().endswith(RECORD):
            return
        self._records += self._received.count(RECORD)
        following = _NEXT.search(self._received)
        self._received = b""
        self._got.set()
        if following is not None:
            self._ask(int(following[1]))

    def _ask(self, offset: int) -> None:
        lines = [f"GET {self._target.format(offset=offset)} HTTP/1.1", "Host: benchmark"]
        if self._target == "/socket":
            lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
            lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
        self.transport.write("\r\n".join([*lines, "\r\n"]).encode())
