"""This library under load."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from benchmarks.load.subject import Ends, Subject
from purgatory import DelayedOperation, Purgatory


class Request(DelayedOperation[None]):
    """A request with a condition of its own."""

    __slots__ = ("ends", "number", "ready")

    def __init__(self, timeout: float, number: int, ends: Ends) -> None:
        super().__init__(timeout)
        self.number = number
        self.ends = ends
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.ends.end(self.number)

    def on_expiration(self) -> None:
        self.ends.expire(self.number)


class PurgatorySubject(Subject[Request]):
    """Purgatory as it is, with its defaults."""

    def __init__(self, ends: Ends, timeout: float, keys: int) -> None:
        super().__init__(ends, timeout, keys)
        self.purgatory = Purgatory("load")

    async def __aenter__(self) -> Self:
        self.purgatory.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.purgatory.aclose(cancel_pending=True)

    def offer(self, number: int) -> Request:
        return self.purgatory.try_complete_else_watch(Request(self.timeout, number, self.ends), self.keys)

    def complete(self, request: Request) -> None:
        request.ready = True
        request.force_complete()

    @property
    def held(self) -> int:
        return self.purgatory.statistics().watched
