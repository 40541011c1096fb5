"""Closes purgatories when the server is told to stop, so that it does not wait for pending polls."""

from __future__ import annotations

import asyncio
import signal
import threading
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any, Final

from purgatory.purgatory import Purgatory

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

NO_EFFECT: Final = (
    "close_on_signal has no effect: this process handles neither SIGINT nor SIGTERM. So its server, such as "
    "hypercorn, is stopped by other means, and cuts pending polls off. Run hypercorn with --workers 0, or "
    "close the purgatories before the server waits for its requests"
)


@asynccontextmanager
async def close_on_signal(*purgatories: Purgatory) -> AsyncIterator[None]:
    """Closes `purgatories` at the first SIGINT or SIGTERM, which expires their pending operations.

    A server that stops gracefully waits for its requests first, and ends the application's lifespan
    afterwards. So polls would hold it up until their timeouts. With this context manager around the `yield`
    of the lifespan, their operations expire at once, and `on_complete` gives the results. Later polls are
    refused until the server stops listening: by PurgatoryClosed, of which `long_poll` makes a 503.

    The server's own signal handlers are called, too. The server has to set them before the lifespan starts,
    as uvicorn does. A signal without a handler keeps its effect. If you stop a server without a signal, close
    its purgatories first.

    hypercorn stops its worker processes without a signal, unless it runs with ``--workers 0``. In a process
    that handles neither signal, this has no effect, and a RuntimeWarning says so. In another thread than the
    main thread it has no effect either, because Python handles signals in the main thread. Test clients run
    applications in such threads, so there is no warning.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    closing: list[asyncio.Task[None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def close() -> None:
        # A second signal closes them once more, which is harmless.
        closing.extend(loop.create_task(purgatory.aclose()) for purgatory in purgatories)

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(close)
        handlers[number](number, frame)

    for number in STOP_SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
            signal.signal(number, handle)
    if not handlers:
        # The warning names the line of the caller's `async with`, behind the frame of the context manager.
        warnings.warn(NO_EFFECT, RuntimeWarning, stacklevel=3)
    try:
        yield
    finally:
        for handled, handler in handlers.items():
            # A handler that was set later, by other code, stays in place.
            if signal.getsignal(handled) is handle:
                signal.signal(handled, handler)
        await asyncio.gather(*closing)
