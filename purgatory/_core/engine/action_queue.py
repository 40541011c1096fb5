"""The checks that hooks ask for. The outermost call runs them, instead of one inside the other."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Hashable
from typing import Final, final

from purgatory._core.operation import Owner


@final
class ActionQueue:
    """The checks that wait until no hook is running, for all purgatories of one event loop.

    Without the queue, a hook that checks a key would run other operations' hooks on its own stack. A chain of
    operations that complete each other would need a stack as deep as the chain is long. Kafka's overflowed
    at about 900, hence its action queue (KAFKA-17509, KAFKA-17703). A check that is asked for twice before
    it starts runs once, because both see the same.

    A call that may run hooks adds 1 to `depth`, and ends with `leave`, or with `abort` when it raises.
    """

    __slots__ = ("_asked", "_loop", "checks", "depth")

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        # A weak reference, because the table below would keep every loop alive.
        self._loop = None if loop is None else weakref.ref(loop)
        # In the order in which they were asked for.
        self.checks: deque[tuple[Owner, Hashable]] = deque()
        self._asked: set[tuple[Owner, Hashable]] = set()
        # How many calls that may run hooks are under way, one inside the other.
        self.depth = 0

    def ask(self, owner: Owner, key: Hashable) -> None:
        """Have `owner` check `key` as soon as the outermost call gets to it."""
        check = (owner, key)
        if check not in self._asked:
            self._asked.add(check)
            self.checks.append(check)

    def leave(self) -> int:
        """End a call that may run hooks. The outermost one runs the checks that were asked for meanwhile.

        Returns how many operations those checks completed.
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
        """End a call that raises an exception which no operation keeps: a KeyboardInterrupt, for example.

        The exception should get through at once. So the loop runs the checks that were asked for in its next
        turn, and none is lost.
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
