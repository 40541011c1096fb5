"""A level of the timing wheel, and its slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from purgatory._core.timer.task import TimerTask
    from purgatory._core.timer.wheel import TimingWheel

# Up to this many slots, the bits fit into an int that compiled code does not allocate.
NARROW: Final = 61


@final
class Level:
    """One wheel of the stack: `size` slots, each `width` ticks wide."""

    __slots__ = ("above", "buckets", "number", "occupied", "span", "wide", "width")

    def __init__(self, number: int, width: int, size: int) -> None:
        self.number = number
        self.width = width
        self.span = width * size
        self.buckets: list[Bucket | None] = [None] * size
        # One bit for each slot. Arithmetic finds the next occupied slot, however many are empty.
        self.occupied = 0
        self.wide = size > NARROW
        self.above: Level | None = None


@final
class Bucket:
    """The tasks of one slot, in order: a doubly linked list whose links are fields of the tasks."""

    __slots__ = ("bit", "first", "last", "level", "slot", "wheel")

    def __init__(self, wheel: TimingWheel, level: Level, slot: int) -> None:
        self.wheel = wheel
        self.level = level
        self.slot = slot
        # The bit of this slot.
        self.bit: int = _bit(slot)
        self.first: TimerTask | None = None
        self.last: TimerTask | None = None


# Compiled, the bits of many slots are an object. When memory runs out, arithmetic with ints ends the process,
# and arithmetic with objects raises MemoryError. So these three functions take Any.


def _bit(slot: Any) -> Any:
    return 1 << slot


def flipped(occupied: Any, bit: Any) -> Any:
    """The bits `occupied` with `bit` flipped: its slot has got its first task, or lost its last one."""
    return occupied ^ bit


def slots_ahead(occupied: Any, slot: Any, size: Any) -> Any:
    """How far ahead of `slot` the next occupied slot is."""
    ahead = occupied >> slot
    if ahead:
        return (ahead & -ahead).bit_length() - 1
    return size - slot + (occupied & -occupied).bit_length() - 1


def flip(level: Level, occupied: int, bit: int) -> int:
    """The bits `occupied` of `level`, with `bit` flipped."""
    if level.wide:
        changed: int = flipped(occupied, bit)
        return changed
    return occupied ^ bit
