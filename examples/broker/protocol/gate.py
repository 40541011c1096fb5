"""Gates that stop tasks: requests of a paused broker, and connections that read far ahead."""

from anyio import Event


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
