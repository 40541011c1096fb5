"""What carries signals from one worker to the waits of another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

Woken = Callable[[str, float], None]


class Carrier(ABC):
    """One worker's end. Used as a context manager, which connects to the servers at `urls`, by their names.

    A record is the time at which it was sent. `woken` is to be called, in the task or the callback of the
    wait, with the topic and the record that have ended it.
    """

    def __init__(self, urls: Mapping[str, str], woken: Woken) -> None:
        self.urls = urls
        self.woken = woken

    async def __aenter__(self) -> Self:
        return self

    @abstractmethod
    async def __aexit__(self, *exception: Any) -> None: ...

    @abstractmethod
    async def wait_for(self, topics: Sequence[str]) -> None:
        """Begin a wait for the next record of each topic. Return when signals reach this worker."""

    @abstractmethod
    async def send(self, topic: str, record: float) -> None:
        """End the waits for `topic`, in whatever worker they are. Raises what the client raises."""
