"""What a timing wheel holds, and the list it holds it in."""

from __future__ import annotations

import math
from typing import final

from purgatory._mypyc import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTask:
    """Something that is due at some tick: what a `TimingWheel` stores and a `Timer` runs.

    Subclass it and override `run`. The links of the bucket it waits in are fields of the task itself, so
    that taking it out again touches its two neighbours and nothing else: O(1), no search, no tombstone.
    """

    __slots__ = ("_bucket", "_deadline", "_expiration", "_next", "_previous")

    def __init__(self) -> None:
        self._bucket: Bucket | None = None
        self._deadline = math.inf
        # While it is in a bucket.
        self._expiration: int
        self._previous: TimerTask | None
        self._next: TimerTask | None

    @property
    def scheduled(self) -> bool:
        """Whether the task is in a wheel now."""
        return self._bucket is not None

    @property
    def deadline(self) -> float | None:
        """The loop's time in seconds before which it does not run, by the latest timer; None when never."""
        return None if self._deadline == math.inf else self._deadline

    def run(self) -> None:
        """Called once by the `Timer` when the task is due, after it has left the wheel."""
        raise NotImplementedError(f"{type(self).__name__} is run by a Timer, so it must override run()")


@final
class Level:
    """One wheel of the stack: `size` slots, each `width` ticks wide."""

    __slots__ = ("above", "buckets", "number", "occupied", "span", "width")

    def __init__(self, number: int, width: int, size: int) -> None:
        self.number = number
        self.width = width
        self.span = width * size
        self.buckets: list[Bucket | None] = [None] * size
        # One bit a slot, so that the next occupied one is found by arithmetic, however many are empty.
        self.occupied = 0
        self.above: Level | None = None


@final
class Bucket:
    """The tasks of one slot, in order: a doubly linked list threaded through the tasks."""

    __slots__ = ("first", "last", "level", "slot", "wheel")

    def __init__(self, wheel: object, level: Level, slot: int) -> None:
        self.wheel = wheel
        self.level = level
        self.slot = slot
        self.first: TimerTask | None = None
        self.last: TimerTask | None = None
