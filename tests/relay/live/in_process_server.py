"""What stands in for a server within one process, with the faults of the servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Self

from purgatory.relay import Transport
from purgatory.testing import InProcessBroker


class InProcessServer:
    """A broker in the place of a server. It is there before it starts."""

    def __init__(self) -> None:
        self._broker = InProcessBroker()

    def transport(self) -> Transport:
        return self._broker.transport()

    def start(self) -> None:
        self._broker.start()

    def kill(self) -> None:
        self._broker.stop()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self._broker.freeze()
        try:
            yield
        finally:
            self._broker.start()

    async def cut(self) -> int:
        ended = len(self._broker._connections)
        self._broker.cut()
        return ended

    def overflow(self, times: int) -> None:
        for _ in range(times):
            self._broker.overflow()

    @asynccontextmanager
    async def hole(self) -> AsyncIterator[Self]:
        yield self

    @contextmanager
    def swallowing(self) -> Iterator[None]:
        self._broker.silence()
        with self.frozen():
            yield
