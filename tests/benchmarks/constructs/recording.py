"""A tally that notes which requests expired, and when."""

from __future__ import annotations

import asyncio

from benchmarks.constructs import Tally


class RecordingTally(Tally):
    """Times by request, in the order in which they expired."""

    __slots__ = ("_awaited", "_enough", "_loop", "times")

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, list[float]] = {}
        self._loop = asyncio.get_running_loop()
        self._enough = asyncio.Event()
        self._awaited = -1

    def expire(self, request: int) -> None:
        super().expire(request)
        self.times.setdefault(request, []).append(self._loop.time())
        if self.expired == self._awaited:
            self._enough.set()

    async def until_expired(self, count: int) -> None:
        """Wait until so many have, which are not there yet."""
        self._awaited = count
        await self._enough.wait()
