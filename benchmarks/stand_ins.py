"""Watch lists of one key made of what comes to mind first, to set beside purgatory's as they grow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import ClassVar


class Satisfied:
    """The condition of all waits on a key: how many of them, counted from the first, are satisfied."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class StandInWait:
    """A wait that does nothing but leave its list when it is completed."""

    __slots__ = ("number", "satisfied", "watchers")

    def __init__(self, number: int, satisfied: Satisfied, watchers: WatchList) -> None:
        self.number = number
        self.satisfied = satisfied
        self.watchers = watchers

    def try_complete(self) -> bool:
        return self.number < self.satisfied.count and self.force_complete()

    def force_complete(self) -> bool:
        self.watchers.remove(self)
        return True


class WatchList(ABC):
    """The waits on one key, first come first."""

    name: ClassVar[str]

    @abstractmethod
    def append(self, wait: StandInWait) -> None:
        """Watch."""

    @abstractmethod
    def remove(self, wait: StandInWait) -> None:
        """Unwatch."""

    @abstractmethod
    def waits(self) -> list[StandInWait]:
        """All of them, in order."""

    def check(self) -> int:
        """Try every wait; how many completed."""
        completed = 0
        for wait in self.waits():
            if wait.try_complete():
                completed += 1
        return completed


class ListWatchList(WatchList):
    """Removing shifts everything behind, and first has to find it."""

    name = "a list"

    def __init__(self) -> None:
        self._waits: list[StandInWait] = []

    def append(self, wait: StandInWait) -> None:
        self._waits.append(wait)

    def remove(self, wait: StandInWait) -> None:
        self._waits.remove(wait)

    def waits(self) -> list[StandInWait]:
        return self._waits.copy()


class DictWatchList(WatchList):
    """Removing is O(1), but leaves a gap that every walk steps over until the dict happens to be rebuilt."""

    name = "a dict"

    def __init__(self) -> None:
        self._waits: dict[StandInWait, None] = {}

    def append(self, wait: StandInWait) -> None:
        self._waits[wait] = None

    def remove(self, wait: StandInWait) -> None:
        del self._waits[wait]

    def waits(self) -> list[StandInWait]:
        return list(self._waits)


class OrderedDictWatchList(WatchList):
    """Flat, at the price of about 100 bytes a wait."""

    name = "an OrderedDict"

    def __init__(self) -> None:
        self._waits: OrderedDict[StandInWait, None] = OrderedDict()

    def append(self, wait: StandInWait) -> None:
        self._waits[wait] = None

    def remove(self, wait: StandInWait) -> None:
        del self._waits[wait]

    def waits(self) -> list[StandInWait]:
        return list(self._waits)
