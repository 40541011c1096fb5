"""A transport that runs, and what arrives over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from purgatory.relay import Transport


class Heard:
    """A receiver that keeps what arrives."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.gaps = 0
        self._changed = asyncio.Event()

    def received(self, text: str) -> None:
        self.texts.append(text)
        self._changed.set()

    def missed(self) -> None:
        self.gaps += 1
        self._changed.set()

    async def change(self) -> None:
        """Return when something has arrived, or was missed, since the last call."""
        await self._changed.wait()
        self._changed.clear()

    async def all_of(self, *texts: str) -> None:
        """Return when each of `texts` has arrived."""
        while not set(texts) <= set(self.texts):
            await self.change()


@asynccontextmanager
async def running(transport: Transport) -> AsyncIterator[Heard]:
    """The transport runs, and is cancelled at the end."""
    heard = Heard()
    async with anyio.create_task_group() as group:
        await group.start(transport.run, heard)
        yield heard
        group.cancel_scope.cancel()
