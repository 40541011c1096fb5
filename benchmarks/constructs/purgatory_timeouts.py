"""Purgatory's operations as timeouts that are renewed: what sessions are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from benchmarks.constructs.construct import Tally
from benchmarks.constructs.timer_construct import TimerConstruct
from purgatory import DelayedOperation, Purgatory


class Session(DelayedOperation[None]):
    """What a user writes: it lasts until nothing has been heard of it for too long."""

    __slots__ = ("request", "tally")

    def __init__(self, timeout: float, request: int, tally: Tally) -> None:
        super().__init__(timeout)
        self.request = request
        self.tally = tally

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        self.tally.expire(self.request)


class PurgatoryTimeouts(TimerConstruct):
    """An operation each, which watches a key of its own."""

    name = "purgatory's operations"

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._purgatory = Purgatory("benchmark")
        self._sessions: list[Session] = []

    async def __aenter__(self) -> Self:
        self._purgatory.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._purgatory.aclose(cancel_pending=True)

    def add(self, delays: Iterable[float]) -> None:
        tally, sessions, watch = self.tally, self._sessions, self._purgatory.try_complete_else_watch
        for request, delay in enumerate(delays, len(sessions)):
            session = Session(delay, request, tally)
            sessions.append(session)
            watch(session, (request,))

    def cancel(self, requests: Sequence[int]) -> None:
        sessions = self._sessions
        for request in requests:
            sessions[request].cancel()

    def renew(self, requests: Sequence[int], delay: float) -> None:
        sessions = self._sessions
        for request in requests:
            sessions[request].reschedule(delay)

    @property
    def wakeups(self) -> int:
        return self._purgatory.statistics().wakeups
