"""Gates that stop tasks: requests of a paused broker, connections that read far ahead, and large requests."""

from typing import Final

from anyio import Event

ALWAYS_RECEIVED: Final = 64 * 1024
"""A request of up to so many bytes waits for no memory: it comes with one read of the socket."""


class Gate:
    """Lets tasks pass while it is open, and holds them while it is closed. It starts open.

    ``delay`` is for requests alone: each one waits this many seconds at an open gate.
    """

    def __init__(self) -> None:
        self.delay = 0.0
        self._opening: Event | None = None

    def __repr__(self) -> str:
        return f"<Gate {'open' if self.is_open else 'closed'}>"

    @property
    def is_open(self) -> bool:
        return self._opening is None

    def close(self) -> None:
        if self._opening is None:
            self._opening = Event()

    def open(self) -> None:
        if self._opening is not None:
            self._opening.set()
            self._opening = None

    async def passed(self) -> None:
        """Wait until the gate is open. An open gate returns at once, without a checkpoint."""
        while self._opening is not None:
            await self._opening.wait()


class RequestMemory:
    """Bounds the bytes of requests of all connections together, after Kafka's ``queued.max.request.bytes``.

    A large request waits until there is less than the limit, and then takes all that it needs, so that one
    that has begun to arrive can always go on (KIP-72). So the bound is the limit and one request more, and
    what each connection may have without a wait: ``ALWAYS_RECEIVED`` and its read-ahead.
    """

    def __init__(self, limit: int = 100 * 1024 * 1024) -> None:
        self._limit = limit
        self._used = 0
        self._room = Gate()

    def __repr__(self) -> str:
        return f"<RequestMemory {self._used} of {self._limit} bytes used>"

    @property
    def used(self) -> int:
        return self._used

    def take(self, size: int) -> None:
        """Take memory without waiting for it."""
        self._used += size
        if self._used >= self._limit:
            self._room.close()

    def release(self, size: int) -> None:
        self._used -= size
        if self._used < self._limit:
            self._room.open()

    async def available(self) -> None:
        """Wait until less than the limit is used."""
        await self._room.passed()
