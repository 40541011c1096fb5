"""Stores of delayed messages in a directory: purgatory.delayed, and what is built where there is none."""

from __future__ import annotations

from typing import Any, Self

from benchmarks.suites.delayed.nats import NATS
from benchmarks.suites.delayed.redis import LaxRedis, Redis
from benchmarks.suites.delayed.sqlite import SharedSQLite, SQLite
from benchmarks.suites.delayed.store import DelayStore
from purgatory.delayed import DelayedMessages, Receipt


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


# Those that can take a million messages, and all.
FAST: tuple[type[DelayStore], ...] = (Purgatory, SharedSQLite, Redis, LaxRedis)
STORES: tuple[type[DelayStore], ...] = (Purgatory, SQLite, *FAST[1:], NATS)
