"""Code that the garbage collector runs."""

from __future__ import annotations

from collections.abc import Callable


class Finalized:
    """Is garbage that only the collector frees. Then it calls a function."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act
        self.myself = self

    def __del__(self) -> None:
        self.act()
