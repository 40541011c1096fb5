"""What a paused broker's requests wait at, and a connection's reading when it is far enough ahead."""

from anyio import Event


class Gate:
    """Open, as it is at first, it lets everyone pass; closed, it holds them until it opens."""

    def __init__(self) -> None:
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
        """Return once the gate is open: at once, and without a checkpoint, if it is."""
        while self._opening is not None:
            await self._opening.wait()
