"""Closes purgatories when the server is told to stop, so that it does not wait for pending polls."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any, Final

from purgatory.purgatory import Purgatory

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@asynccontextmanager
async def close_on_signal(*purgatories: Purgatory) -> AsyncIterator[None]:
    """Closes `purgatories` at the first SIGINT or SIGTERM, which expires their pending operations.

    A server that stops gracefully waits for its requests first, and ends the application's lifespan
    afterwards. So polls would hold it up until their timeouts. With this context manager around the `yield`
    of the lifespan, their operations expire at once, and `on_complete` gives the answers. Later polls are
    refused (PurgatoryClosed, a 503 by `long_poll`) until the server stops listening.

    The server's own signal handlers are called as well. They have to be set before the lifespan starts;
    uvicorn and other servers do so. A signal without a handler keeps its effect. In a thread other than the
    main one this does nothing, since signals are handled in the main thread only. If you stop a server by
    other means than a signal, close its purgatories first.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    closing: list[asyncio.Task[None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def close() -> None:
        if not closing:
            closing.extend(loop.create_task(purgatory.aclose()) for purgatory in purgatories)

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(close)
        handlers[number](number, frame)

    for number in STOP_SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
            signal.signal(number, handle)
    try:
        yield
    finally:
        for handled, handler in handlers.items():
            # A handler that was set later, by other code, stays in place.
            if signal.getsignal(handled) is handle:
                signal.signal(handled, handler)
        await asyncio.gather(*closing)
