"""asyncio.timeout() as a timeout that is renewed: a task each, which has nothing else to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType

from benchmarks.constructs.construct import Tally
from benchmarks.constructs.timer_construct import TimerConstruct


class AsyncioTimeouts(TimerConstruct):
    """A session is a task within its timeout; a heartbeat calls `asyncio.Timeout.reschedule`."""

    name = "asyncio.timeout().reschedule"

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._timeouts: list[asyncio.Timeout] = []
        self._sessions: list[asyncio.Task[None]] = []

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for session in self._sessions:
            session.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)

    def add(self, delays: Iterable[float]) -> None:
        """The tasks begin, and are there to be renewed, a turn of the loop later."""
        for request, delay in enumerate(delays, len(self._timeouts)):
            timeout = asyncio.timeout(delay)
            self._timeouts.append(timeout)
            self._sessions.append(self.loop.create_task(self._session(request, timeout)))

    async def _session(self, request: int, timeout: asyncio.Timeout) -> None:
        try:
            async with timeout:
                await self.loop.create_future()
        except TimeoutError:
            self.tally.expire(request)

    def cancel(self, requests: Sequence[int]) -> None:
        for request in requests:
            self._sessions[request].cancel()

    def renew(self, requests: Sequence[int], delay: float) -> None:
        timeouts, time = self._timeouts, self.loop.time
        for request in requests:
            timeouts[request].reschedule(time() + delay)

    @property
    def wakeups(self) -> int:
        """Once for each that has expired."""
        return self.tally.expired
