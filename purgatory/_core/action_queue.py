"""The checks that hooks ask for, run by the outermost call instead of one inside the other."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Hashable
from typing import Final, final


class Checker:
    """A purgatory's checks, as the queue sees them."""

    def run_check(self, key: Hashable) -> int:
        """Try the operations that watch `key`; how many of them completed."""
        raise NotImplementedError


@final
class ActionQueue:
    """The checks that wait until no hook is running, for all purgatories of one event loop.

    Without it a hook that checks a key would run other operations' hooks on its own stack, and a chain of
    operations that complete each other would need a stack as deep as it is long: Kafka's overflowed at about
    900, hence its action queue (KAFKA-17509, KAFKA-17703). A check asked for twice before it has begun is
    run once: it sees the same.
    """

    __slots__ = ("_asked", "_loop", "checks", "depth")

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        # Weakly, or the table below would keep every loop that ever had a purgatory.
        self._loop = None if loop is None else weakref.ref(loop)
        # In the order asked for.
        self.checks: deque[tuple[Checker, Hashable]] = deque()
        self._asked: set[tuple[Checker, Hashable]] = set()
        # How many calls that may run hooks are under way, one inside the other.
        self.depth = 0

    def ask(self, checker: Checker, key: Hashable) -> None:
        """Have `key` checked as soon as the outermost call gets to it."""
        check = (checker, key)
        if check not in self._asked:
            self._asked.add(check)
            self.checks.append(check)

    def leave(self) -> int:
        """A call that may run hooks is over; the outermost one runs the checks asked for meanwhile.

        How many operations those completed.
        """
        if self.depth > 1 or not self.checks:
            self.depth -= 1
            return 0
        completed = 0
        try:
            while self.checks:
                check = self.checks.popleft()
                self._asked.discard(check)
                completed += check[0].run_check(check[1])
        except BaseException:
            self.abort()
            raise
        self.depth = 0
        return completed

    def abort(self) -> None:
        """Leave because of an exception that is no Exception (those stay with their operation).

        It should get through at once, a KeyboardInterrupt above all; so the checks asked for run in the
        loop's next turn, and are not lost.
        """
        self.depth -= 1
        loop = None if self._loop is None else self._loop()
        if self.checks and self.depth == 0 and loop is not None:
            loop.call_soon(self._resume)

    def _resume(self) -> None:
        self.depth += 1
        self.leave()


_queues: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, ActionQueue]] = (
    weakref.WeakKeyDictionary()
)


def action_queue_of(loop: asyncio.AbstractEventLoop) -> ActionQueue:
    """The one queue of `loop`."""
    queue = _queues.get(loop)
    if queue is None:
        queue = _queues[loop] = ActionQueue(loop)
    return queue
