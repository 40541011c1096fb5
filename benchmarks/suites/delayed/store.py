"""What the benchmarks ask of a store of delayed messages."""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar, Self

from benchmarks.harness.processes import processor_seconds, written_bytes

Deliver = Callable[[str, bytes, float], Awaitable[None]]

# Seconds between two looks of those that poll, and how many messages one look takes.
POLL = 0.01
AT_A_LOOK = 1000


class DelayStore(ABC):
    """Opened by ``async with``. `schedule` and `cancel` return when the disk has it, if the store waits."""

    name: ClassVar[str]
    available: ClassVar[bool] = True

    def __init__(self, directory: Path, deliver: Deliver) -> None:
        # A store with a server adds it.
        self.process_ids = [os.getpid()]
        self.directory = directory
        self.deliver = deliver

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
        return sum(map(processor_seconds, self.process_ids))

    def written_bytes(self) -> int:
        return sum(map(written_bytes, self.process_ids))


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
    async def delete(self, ids: list[Any]) -> object: ...
