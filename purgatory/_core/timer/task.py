"""What a timing wheel holds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn, Self

from purgatory._core._mypyc import i32, mypyc_attr
from purgatory.errors import safe_repr

if TYPE_CHECKING:
    from purgatory._core.timer.wheel import Bucket


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTask:
    """A task that is due at some tick: a `TimingWheel` stores it, and a `Timer` runs it.

    Subclass it and override `run`. The links of its bucket are fields of the task itself. So removing it
    touches its two neighbours and nothing else: O(1), without a search and without a tombstone.
    """

    __slots__ = ("_bucket", "_deadline", "_expiration", "_next", "_previous", "_tries")

    # How often an operation was tried. It is here because only this class has four bytes free.
    _tries: i32

    # __new__ sets it, so that __init__ can tell a new task from one that a wheel refers to.
    _bucket: Bucket | None

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        task = object.__new__(cls)
        task._bucket = None
        return task

    def __init__(self) -> None:
        if self._bucket is not None:
            raise RuntimeError(f"{safe_repr(self)} is scheduled: make a new task instead")
        self._deadline = math.inf
        # These three are set while the task is in a bucket.
        self._expiration: int
        self._previous: TimerTask | None
        self._next: TimerTask | None

    @property
    def scheduled(self) -> bool:
        """Whether the task is in a wheel now."""
        return self._bucket is not None

    @property
    def deadline(self) -> float | None:
        """The loop's time, in seconds, before which the task does not run. None means never."""
        return None if self._deadline == math.inf else self._deadline

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse copy.copy, copy.deepcopy and pickle: a wheel refers to this object and to no other."""
        raise TypeError(f"cannot copy or pickle {type(self).__name__}: make a new one")

    def _wake(self) -> None:
        """The `Timer` calls this in place of `run` when the task wakes before its deadline."""
        raise NotImplementedError

    def run(self) -> None:
        """The `Timer` calls this once when the task is due, after the task has left the wheel."""
        raise NotImplementedError(f"{type(self).__name__} is run by a Timer, so it must override run()")
