"""A table of SQLite, with an index of due times."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from benchmarks.suites.delayed.store import AT_A_LOOK, Polled

T = TypeVar("T")
# A statement and its arguments.
Change = tuple[str, Sequence[Any]]


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
