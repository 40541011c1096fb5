"""What the benchmarks ask of a store of delayed messages."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar, Self

from benchmarks.harness.processes import processor_seconds, written_bytes

Deliver = Callable[[str, bytes, float], Awaitable[None]]


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
