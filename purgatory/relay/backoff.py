"""How long to wait before the next attempt."""

from __future__ import annotations

import random
from typing import Final, final

# Seconds.
_FIRST: Final = 0.05
_LONGEST: Final = 5.0


@final
class Backoff:
    """Seconds to wait after each failure: twice as many each time, up to five.

    A random part, up to half, is left out. So the processes that have lost a server do not all come back to
    it at the same instant.
    """

    __slots__ = ("_failures",)

    def __init__(self, failures: int = 0) -> None:
        self._failures = failures

    def next(self) -> float:
        """The seconds to wait now."""
        longest = min(_FIRST * 2.0 ** min(self._failures, 60), _LONGEST)
        self._failures += 1
        return longest * random.uniform(0.5, 1)

    def reset(self) -> None:
        """There was a success."""
        self._failures = 0
