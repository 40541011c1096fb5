"""A record that is due, and waits for whoever forwards it."""

from __future__ import annotations

from collections.abc import Callable

from purgatory import DelayedOperation


class Turn(DelayedOperation[bool]):
    """Ends when the record was forwarded, or when this instance is the owner of its partition.

    Awaiting it tells whether this instance has to forward the record. It watches the id of the record, and
    its partition.
    """

    __slots__ = ("_is_done", "_is_owner")

    def __init__(self, is_done: Callable[[], bool], is_owner: Callable[[], bool]) -> None:
        super().__init__(None)
        self._is_done = is_done
        self._is_owner = is_owner

    def try_complete(self) -> bool:
        return (self._is_done() or self._is_owner()) and self.force_complete()

    def on_complete(self) -> bool:
        return not self._is_done()
