"""A fetch waits until there is enough to read: the long poll of consumers and followers."""

from collections.abc import Callable, Collection, Hashable
from typing import TypeVar

from examples.broker.waits.parking import park
from purgatory import DelayedOperation, Purgatory

T = TypeVar("T")


class DelayedFetch(DelayedOperation[T]):
    """Completes once ``min_bytes`` can be read, or at the timeout (kafka.server.DelayedFetch).

    ``readable`` counts the bytes, and reads none. The count is infinite when the reader needs an answer at
    once, as after an error. ``read`` makes the answer: all that can be read by then.
    """

    __slots__ = ("_min_bytes", "_read", "_readable")

    def __init__(
        self, timeout: float, min_bytes: int, readable: Callable[[], float], read: Callable[[], T]
    ) -> None:
        super().__init__(timeout)
        self._min_bytes = min_bytes
        self._readable = readable
        self._read = read

    def try_complete(self) -> bool:
        return self._readable() >= self._min_bytes and self.force_complete()

    def on_complete(self) -> T:
        return self._read()


def park_fetch(fetches: Purgatory, fetch: DelayedFetch[T], keys: Collection[Hashable]) -> DelayedFetch[T]:
    """Have a fetch wait for each partition that it reads. (A fetch in a session waits for its session.)"""
    return park(fetches, fetch, keys)


def check_fetches(fetches: Purgatory, key: Hashable) -> None:
    """Call it when there may be more to read, or an error to tell.

    Followers read up to the end of the log, so call it after an append. Consumers read up to the high
    watermark, so call it when that has moved.
    """
    fetches.check_and_complete(key)
