"""Stores that are asked for what is due: a table of SQLite, and a sorted set of Redis."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sqlite3
import subprocess
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Self, TypeVar

from redis.asyncio import Redis as Client
from redis.exceptions import ConnectionError

from benchmarks.suites.delayed.store import DelayStore

# Seconds between two looks, and how many messages one look takes.
POLL = 0.01
AT_A_LOOK = 1000
T = TypeVar("T")
# A statement and its arguments.
Change = tuple[str, Sequence[Any]]


class Polled(DelayStore):
    """Looks every POLL seconds for what is due, delivers it, and then deletes it: at least once."""

    async def __aenter__(self) -> Self:
        await self.open()
        self._closing = False
        self._polling = asyncio.create_task(self._poll())
        return self

    async def __aexit__(self, *exception: Any) -> None:
        # No cancellation: redis-py 8.1 loses one now and then.
        self._closing = True
        await self._polling
        await self.close()

    async def _poll(self) -> None:
        while not self._closing:
            due = await self.due(time.time())
            for id, at, payload in due:
                await self.deliver(str(id), payload, at)
            if due:
                await self.delete([id for id, _, _ in due])
            if len(due) < AT_A_LOOK:
                await asyncio.sleep(POLL)

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def due(self, now: float) -> list[tuple[Any, float, bytes]]:
        """The first messages that are due: id, due time and payload."""

    @abstractmethod
    async def delete(self, ids: list[Any]) -> object: ...


class SQLite(Polled):
    """The usual way: an index of due times, a connection in a thread, and a transaction for each message."""

    name = "SQLite"

    async def open(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        await self._run(self._connect)

    async def close(self) -> None:
        await self._run(self._connection.close)
        self._thread.shutdown()

    def _connect(self) -> None:
        self._connection = sqlite3.connect(self.directory / "messages.db")
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, due REAL, payload BLOB)",
            "CREATE INDEX IF NOT EXISTS dues ON messages (due)",
        ):
            self._connection.execute(statement)

    async def _run(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _transaction(self, changes: Sequence[Change]) -> list[sqlite3.Cursor]:
        with self._connection:
            return [self._connection.execute(*change) for change in changes]

    async def change(self, *change: Any) -> sqlite3.Cursor:
        return (await self._run(self._transaction, [change]))[0]

    async def schedule(self, payload: bytes, at: float) -> int | None:
        row = await self.change("INSERT INTO messages (due, payload) VALUES (?, ?)", (at, payload))
        return row.lastrowid

    async def cancel(self, receipt: int) -> bool:
        return (await self.change("DELETE FROM messages WHERE id = ?", (receipt,))).rowcount == 1

    async def due(self, now: float) -> list[tuple[Any, float, bytes]]:
        query = "SELECT id, due, payload FROM messages WHERE due <= ? ORDER BY due LIMIT ?"
        return await self._run(lambda: self._connection.execute(query, (now, AT_A_LOOK)).fetchall())

    async def delete(self, ids: list[int]) -> None:
        await self._run(self._transaction, [("DELETE FROM messages WHERE id = ?", (id,)) for id in ids])


class SharedSQLite(SQLite):
    """Those who wait share a transaction, as with purgatory.delayed."""

    name = "SQLite, shared transactions"

    async def open(self) -> None:
        await super().open()
        self._changes: list[tuple[Change, asyncio.Future[sqlite3.Cursor]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def change(self, *change: Any) -> sqlite3.Cursor:
        future: asyncio.Future[sqlite3.Cursor] = asyncio.get_running_loop().create_future()
        self._changes.append((change, future))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return await future

    async def _write(self) -> None:
        while self._changes:
            changes, self._changes = self._changes, []
            cursors = await self._run(self._transaction, [change for change, _ in changes])
            for (_, future), cursor in zip(changes, cursors, strict=True):
                future.set_result(cursor)
        self._writing = None


class Redis(Polled):
    """A sorted set of due times and a hash of payloads, by redis-py."""

    name = "Redis, appendfsync always"
    available = shutil.which("redis-server") is not None

    async def open(self) -> None:
        socket = str(self.directory / "socket")
        options = {"port": 0, "unixsocket": socket, "dir": self.directory, "save": ""}
        command = ["redis-server"]
        for name, value in (options | {"appendonly": "yes", "appendfsync": "always"}).items():
            command += [f"--{name}", str(value)]
        self._server = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.DEVNULL)
        self.process_ids.append(self._server.pid)
        self._client = Client(unix_socket_path=socket)
        while True:
            with suppress(ConnectionError):
                await self._client.ping()
                break
            await asyncio.sleep(0.002)
        self._numbers = itertools.count(time.time_ns())

    async def close(self) -> None:
        await self._client.aclose()
        self._server.terminate()
        await asyncio.to_thread(self._server.wait)

    async def schedule(self, payload: bytes, at: float) -> bytes:
        id = b"%x" % next(self._numbers)
        pipeline: Any = self._client.pipeline()
        await pipeline.hset("payloads", id, payload).zadd("dues", {id: at}).execute()
        return id

    async def cancel(self, receipt: bytes) -> bool:
        return await self.delete([receipt]) == 1

    async def due(self, now: float) -> list[tuple[Any, float, bytes]]:
        client: Any = self._client
        found = await client.zrangebyscore("dues", "-inf", now, 0, AT_A_LOOK, withscores=True)
        payloads = await client.hmget("payloads", [id for id, _ in found]) if found else []
        return [(id, due, payload) for (id, due), payload in zip(found, payloads, strict=True)]

    async def delete(self, ids: list[bytes]) -> int:
        pipeline: Any = self._client.pipeline()
        removed, _ = await pipeline.zrem("dues", *ids).hdel("payloads", *ids).execute()
        return int(removed)
