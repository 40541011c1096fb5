"""The keys whose checks try the most operations."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import nlargest
from operator import itemgetter
from typing import Final

COUNTED: Final = 200
"""Keys that are counted at a time."""


class BusyKeys:
    """Counts the operations that were tried, by the key that was checked.

    It counts at most `COUNTED` keys. When there are more, it forgets the half with the fewest tries. So the
    count of a key may be too low, but never too high. The cost of a count is O(1) on average.
    """

    __slots__ = ("tries",)

    def __init__(self) -> None:
        self.tries: dict[Hashable, int] = {}

    def count(self, key: Hashable, tried: int) -> None:
        """Count a check of `key` that tried `tried` operations."""
        tries = self.tries
        tries[key] = tries.get(key, 0) + tried
        if len(tries) > COUNTED:
            self.keep(COUNTED // 2)

    def keep(self, many: int) -> None:
        """Forget all but the `many` keys with the most tries."""
        if len(self.tries) > many:
            self.tries = dict(nlargest(many, self.tries.items(), key=itemgetter(1)))
