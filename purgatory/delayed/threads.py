"""The threads that use an open store for the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

from purgatory.delayed.storage.store import Store
from purgatory.errors import PurgatoryClosed

A = TypeVarTuple("A")
T = TypeVar("T")


class Threads:
    """Three threads. Each makes one call at a time, in the order in which the calls were asked for.

    After `close`, asking for a call raises PurgatoryClosed.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.closed = False
        self._reader, self._searcher, self._mover = (
            ThreadPoolExecutor(1, thread_name_prefix=f"purgatory delayed {name}")
            for name in ("reader", "searcher", "mover")
        )

    def read(self, call: Callable[[*A], T], *arguments: *A) -> asyncio.Future[T]:
        """Read messages that are about to be due. Nothing that takes long may hold it up."""
        return self._run(self._reader, call, *arguments)

    def search(self, call: Callable[[*A], T], *arguments: *A) -> asyncio.Future[T]:
        """Read whole files, which may take seconds."""
        return self._run(self._searcher, call, *arguments)

    def move(self, call: Callable[[*A], T], *arguments: *A) -> asyncio.Future[T]:
        """Write slot files and dead letters, and remove files. See `Store.change`."""
        return self._run(self._mover, self.store.change, call, *arguments)

    async def close(self) -> None:
        """End the threads, when they have done what they were told."""
        self.closed = True
        for thread in (self._reader, self._searcher, self._mover):
            await asyncio.get_running_loop().run_in_executor(thread, int)
            thread.shutdown()

    def _run(self, thread: ThreadPoolExecutor, call: Callable[[*A], T], *arguments: *A) -> asyncio.Future[T]:
        if self.closed:
            raise PurgatoryClosed("the store of delayed messages has been closed")
        return asyncio.get_running_loop().run_in_executor(thread, call, *arguments)
