"""Layer 2: what is woken by the end of an operation."""

from __future__ import annotations

from typing import Protocol


class Waiter(Protocol):
    """Told, once, that an operation is done: an asyncio.Future, or what acts as one here."""

    def done(self) -> bool:
        """Whether it need not be told any more."""

    def set_result(self, result: None, /) -> None:
        """It is done and has its outcome; its purgatory is not through with it, so this just notes it."""
