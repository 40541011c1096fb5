"""Stores of delayed messages in a directory: purgatory.delayed, and what is built where there is none."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from benchmarks.harness.processes import resident_bytes
from purgatory.delayed import DelayedMessages, Receipt

Deliver = Callable[[str, bytes, float], Awaitable[None]]

# Seconds between two looks of those that poll, and how many messages one look takes.
POLL = 0.01
AT_A_LOOK = 1000

T = TypeVar("T")
# A statement and its arguments.
Change = tuple[str, Sequence[Any]]


class DelayStore(ABC):
    """Opened by ``async with``. `schedule` and `cancel` return when the disk has it, if the store waits."""

    name: ClassVar[str]
    available: ClassVar[bool] = True

    def __init__(self, directory: Path, deliver: Deliver) -> None:
        self.directory = directory
        self.deliver = deliver
        # Those that do the work.
        self.process_ids = [os.getpid()]

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(self, *_: object) -> None: ...

    @abstractmethod
    async def schedule(self, payload: bytes, at: float) -> Any:
        """What `cancel` takes."""

    @abstractmethod
    async def cancel(self, receipt: Any) -> bool: ...

    def processor_seconds(self) -> float:
        """What the processes have used, with their threads that have ended."""
        # Linux numbers the processor clock of a process so: see clock_getcpuclockid(3).
        return sum(time.clock_gettime(~each << 3 | 2) for each in self.process_ids)

    def written_bytes(self) -> int:
        """What the processes have sent to the disk, in whole pages."""
        io = (Path(f"/proc/{each}/io").read_text() for each in self.process_ids)
        return sum(int(text.partition("\nwrite_bytes:")[2].split()[0]) for text in io)

    def resident_bytes(self) -> int:
        return sum(map(resident_bytes, self.process_ids))

    def kill(self) -> None:
        """End the processes at once, this one last."""
        for process_id in reversed(self.process_ids):
            os.kill(process_id, signal.SIGKILL)


class Purgatory(DelayStore):
    name = "purgatory.delayed"

    async def __aenter__(self) -> Self:
        self.messages = await DelayedMessages(self.directory / "messages", self.deliver).__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self.messages.__aexit__(*exception)

    async def schedule(self, payload: bytes, at: float) -> Receipt:
        return await self.messages.schedule(payload, at=at)

    async def cancel(self, receipt: Receipt) -> bool:
        return await self.messages.cancel(receipt)


class Polled(DelayStore):
    """Looks every POLL seconds for what is due, delivers it, and then deletes it: at least once."""

    async def __aenter__(self) -> Self:
        await self.open()
        self._polling = asyncio.create_task(self._poll())
        return self

    async def __aexit__(self, *exception: Any) -> None:
        self._polling.cancel()
        await asyncio.wait([self._polling])
        await self.close()

    async def _poll(self) -> None:
        while True:
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
    async def delete(self, ids: list[Any]) -> None: ...


class SQLite(Polled):
    """The usual way: a connection in a thread, and a transaction for each message."""

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
    """A sorted set of due times and a hash of payloads, over one connection on which commands do not wait."""

    name = "Redis, appendfsync always"
    available = shutil.which("redis-server") is not None
    fsync = "always"

    async def open(self) -> None:
        socket = self.directory / "socket"
        with suppress(FileNotFoundError):
            socket.unlink()
        options = {"port": 0, "unixsocket": socket, "dir": self.directory, "save": "", "appendonly": "yes"}
        command = ["redis-server"]
        for name, value in (options | {"appendfsync": self.fsync}).items():
            command += [f"--{name}", str(value)]
        self._server = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.DEVNULL)
        self.process_ids = [os.getpid(), self._server.pid]
        while True:
            with suppress(OSError):
                self._reader, self._writer = await asyncio.open_unix_connection(socket)
                break
            await asyncio.sleep(0.002)
        self._answers: deque[asyncio.Future[Any]] = deque()
        self._reading = asyncio.create_task(self._read())
        # It may load its file yet.
        while isinstance(await self._send([b"PING"]), Exception):  # noqa: ASYNC110  # Redis tells nobody
            await asyncio.sleep(0.002)
        self._numbers = itertools.count(time.time_ns())

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        self._server.terminate()
        await asyncio.to_thread(self._server.wait)

    async def _send(self, *commands: Sequence[bytes]) -> Any:
        """The answer to the last one."""
        for words in commands:
            self._writer.write(
                b"*%d\r\n%b" % (len(words), b"".join(b"$%d\r\n%b\r\n" % (len(each), each) for each in words))
            )
            answer = asyncio.get_running_loop().create_future()
            self._answers.append(answer)
        return await answer

    async def _read(self) -> None:
        while True:
            answer = await self._parse()
            future = self._answers.popleft()
            if not future.done():
                future.set_result(answer)

    async def _parse(self) -> Any:
        line = await self._reader.readuntil(b"\r\n")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return None if rest == b"-1" else (await self._reader.readexactly(int(rest) + 2))[:-2]
        if kind == b"*":
            return [await self._parse() for _ in range(int(rest))]
        if kind == b":":
            return int(rest)
        return RuntimeError(rest.decode()) if kind == b"-" else rest

    async def schedule(self, payload: bytes, at: float) -> bytes:
        id, due = b"%x" % next(self._numbers), repr(at).encode()
        await self._send(
            [b"MULTI"], [b"HSET", b"payloads", id, payload], [b"ZADD", b"dues", due, id], [b"EXEC"]
        )
        return id

    async def cancel(self, receipt: bytes) -> bool:
        commands = [b"MULTI"], [b"ZREM", b"dues", receipt], [b"HDEL", b"payloads", receipt], [b"EXEC"]
        removed: list[int] = await self._send(*commands)
        return removed[0] == 1

    async def due(self, now: float) -> list[tuple[Any, float, bytes]]:
        limit = [b"LIMIT", b"0", b"%d" % AT_A_LOOK]
        until = [b"-inf", repr(now).encode(), b"WITHSCORES"]
        found = await self._send([b"ZRANGEBYSCORE", b"dues", *until, *limit])
        ids, dues = found[::2], map(float, found[1::2])
        payloads = await self._send([b"HMGET", b"payloads", *ids]) if ids else []
        return list(zip(ids, dues, payloads, strict=True))

    async def delete(self, ids: list[bytes]) -> None:
        await self._send([b"MULTI"], [b"ZREM", b"dues", *ids], [b"HDEL", b"payloads", *ids], [b"EXEC"])


class LaxRedis(Redis):
    """It loses the last second in a crash of the machine."""

    name = "Redis, appendfsync everysec"
    fsync = "everysec"


# Those that can take a million messages, and all.
FAST: tuple[type[DelayStore], ...] = (Purgatory, SharedSQLite, Redis, LaxRedis)
STORES: tuple[type[DelayStore], ...] = (Purgatory, SQLite, *FAST[1:])
