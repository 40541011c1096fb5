"""A tally that records which requests expired, and when."""

from __future__ import annotations

import asyncio

from benchmarks.designs.alternative import Tally


class RecordingTally(Tally):
    """Times by request, in the order in which they expired."""

    __slots__ = ("_loop", "times")

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, list[float]] = {}
        self._loop = asyncio.get_running_loop()

    def expire(self, request: int) -> None:
        super().expire(request)
        self.times.setdefault(request, []).append(self._loop.time())
