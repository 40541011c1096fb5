"""A server's end, seen in time: pending polls are answered before the server waits for them."""

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
    """Closes `purgatories` at the first SIGINT or SIGTERM, which expires what is pending there.

    A server that stops gracefully waits for its requests first and ends the application's lifespan then, so
    polls would hold it up until their timeouts. With this around the `yield` of the lifespan they are
    answered at once, by their operations' `on_complete`; what is polled from then on is refused
    (PurgatoryClosed, a 503 by `long_poll`) until the server stops listening.

    The server's own handlers are called as well, so they must be in place: those of uvicorn are, and of
    others that set them before the lifespan's start-up. A signal that nobody handles stays as it is. In a
    thread other than the main one this does nothing, since no signal comes there; whoever stops a server by
    other means than a signal closes its purgatories first.
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
            # Unless somebody has set another one since, which is not ours to take away.
            if signal.getsignal(handled) is handle:
                signal.signal(handled, handler)
        await asyncio.gather(*closing)
