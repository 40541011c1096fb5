"""How long an operation was in a purgatory, for those who observe it."""

from __future__ import annotations

from typing import final


@final
class Timing:
    """An operation's stay in a purgatory: `offered` and `ended` in seconds of the loop's time, and `tries`.

    The clock is the one that deadlines are counted from, which on uvloop is more exact than ``loop.time()``.
    Made for observers alone, one for each operation; it refers to nothing, so it may be kept.
    """

    __slots__ = ("ended", "offered", "tries")

    # Who makes one sets them: interpreted, an __init__ would double what it takes.
    offered: float
    # When its hooks had run.
    ended: float
    # How often its condition was looked at, when it was offered included.
    tries: int

    def __repr__(self) -> str:
        return f"<Timing offered={self.offered} ended={self.ended} tries={self.tries}>"
