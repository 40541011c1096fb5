"""What waits until no hook is running: ends and checks. The outermost call deals with them."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from typing import Final, final

from purgatory._core.operation import NO_LIMIT, Operation
from purgatory._core.outcome import NEW, PENDING
from purgatory._core.safe_repr import safe_repr

# What the engines of one loop are doing. A call that raises the level later restores the one it found.
#
# Nothing: the next call is the outermost one.
IDLE: Final = 0
# Trying operations: a check waits for the outermost call.
TRYING: Final = 1
# Running the hooks of an operation that ends: other hooks of this kind wait until these are over.
SETTLING: Final = 2
# Changing the timer or the watch lists: another change waits until this one is whole. A user's code can run
# in the middle of it all the same: the methods of a key, or a finalizer that the collector runs.
WRITING: Final = 3


class CheckOwner:
    """The interface through which the queue runs the checks of one purgatory."""

    __slots__ = ()

    def run_check(self, key: Hashable, limit: int) -> int:
        """Try the operations that watch `key`, until `limit` have completed. Returns how many have."""
        raise NotImplementedError

    def report(self, message: str, error: BaseException) -> None:
        """Report an exception that nobody else sees."""
        raise NotImplementedError


@final
class Check:
    """A check of one key that somebody has asked for."""

    __slots__ = ("key", "limit", "owner", "repeated", "started")

    def __init__(self, owner: CheckOwner, key: Hashable, limit: int) -> None:
        self.owner = owner
        self.key = key
        self.limit = limit
        self.started = False
        # Whether it starts again, because memory ran out in the middle of it.
        self.repeated = False


@final
class ActionQueue:
    """The checks and the ends that wait for the outermost call, for all purgatories of one event loop.

    Without the queue, a hook that checks a key would run other operations' hooks on its own stack. A chain of
    operations that complete each other would need a stack as deep as the chain is long. Kafka's overflowed
    at about 900, hence its action queue (KAFKA-17509, KAFKA-17703). A check that is asked for twice before
    it starts runs once, because both see the same. One with a limit is never merged with another: two permits
    that are handed over one by one are two.

    An exception that no operation keeps, such as a KeyboardInterrupt or a MemoryError of the engine itself,
    is raised at once. The loop does the rest of the work in its next turn.
    """

    __slots__ = ("_asked", "_checks", "_deferred", "_loop", "again", "current", "level", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        # A weak reference, because the table below would keep every loop alive.
        self._loop = None if loop is None else weakref.ref(loop)
        # In the order in which they were asked for.
        self._checks: deque[Check] = deque()
        # The checks that have not started, and perhaps some that have.
        self._asked: dict[tuple[CheckOwner, Hashable], Check] = {}
        self.level = IDLE
        # The operation that is being settled. After an exception it remains, until `settle` goes on with it.
        self.current: Operation | None = None
        # Whether an exception has interrupted the work on it before.
        self.again = False
        # Operations to look at afterwards. Their state says what for.
        self._deferred: deque[Operation] = deque()
        # Whether anything waits to be dealt with.
        self.waiting = False

    def ask(self, owner: CheckOwner, key: Hashable, limit: int) -> None:
        """Have `owner` check `key` as soon as the outermost call gets to it."""
        if limit != NO_LIMIT:
            # The look-up below raises for an unhashable key, and this does the same.
            hash(key)
            self.add(owner, key, limit)
            return
        asked = self._asked.get((owner, key))
        if asked is None or asked.started:
            check = Check(owner, key, NO_LIMIT)
            self._asked[owner, key] = check
            self._checks.append(check)
            self.waiting = True

    def ask_for_each(self, owner: CheckOwner, keys: list[Hashable]) -> None:
        """Ask for a check of each of `keys`. One that cannot be compared does not stop the others."""
        for key in keys:
            try:
                self.ask(owner, key, NO_LIMIT)
            except Exception:
                # The check is going to raise the same, which is then reported.
                self.add(owner, key, NO_LIMIT)

    def add(self, owner: CheckOwner, key: Hashable, limit: int) -> None:
        """Do what `ask` does, but call no method of the key, and merge the check with no other."""
        self._checks.append(Check(owner, key, limit))
        self.waiting = True

    def defer(self, operation: Operation) -> None:
        """Look at `operation` when no hook is running and nothing is being written."""
        self._deferred.append(operation)
        self.waiting = True

    def go_on(self, level: int) -> int:
        """Go to `level`, and deal with what waits there. Returns how many operations its checks completed."""
        if self.current is not None or self._deferred:
            self.settle(level)
        if level == IDLE:
            return self.leave()
        return 0

    def settle(self, level: int) -> None:
        """Deal with the current operation and those that were deferred, and go to `level`.

        Raises the first BaseException of a hook that is not an Exception, when that is done.
        """
        raised: BaseException | None = None
        self.level = SETTLING
        try:
            while self.current is not None or self._deferred:
                self.again = self.current is not None
                operation = self._deferred.popleft() if self.current is None else self.current
                self.current = operation
                try:
                    self._look_at(operation)
                except BaseException as error:
                    if operation._owner is not None:
                        raise
                    # It is settled: a hook or an observer has raised this.
                    raised = raised or error
                self.current = None
        except BaseException:
            self.level = level
            self.waiting = True
            self.abort()
            raise
        self.level = level
        self.waiting = bool(self._checks)
        if raised is not None:
            self.abort()
            raise raised

    def _look_at(self, operation: Operation) -> None:
        owner = operation._owner
        if owner is None:
            return
        if operation._state is NEW:
            owner.park(operation)
        elif operation._state is PENDING:
            owner.reschedule(operation, operation._timeout)
        else:
            owner.end(operation, operation._state, None)

    def leave(self) -> int:
        """End the outermost call: run the checks that were asked for. Returns how many completed."""
        completed = 0
        try:
            while self._checks:
                self.level = TRYING
                check = self._checks.popleft()
                check.started = True
                if not self._checks:
                    self._asked.clear()
                try:
                    completed += check.owner.run_check(check.key, check.limit)
                except Exception as error:
                    if isinstance(error, MemoryError) and check.limit == NO_LIMIT and not check.repeated:
                        # The operations behind the last one that was tried are still to be checked. (With a
                        # limit nobody knows here how much of it is left.)
                        check.repeated = True
                        self._checks.appendleft(check)
                        continue
                    # The key was good when it was asked for, and now it raises. Others go on.
                    check.owner.report(f"the check of {safe_repr(check.key)} failed", error)
        except BaseException:
            self.level = IDLE
            self.waiting = True
            self.abort()
            raise
        self.level = IDLE
        self.waiting = False
        return completed

    def abort(self) -> None:
        """Have the loop go on after an exception that no operation keeps, which should get through at once.

        The caller has gone back to its level. It has set `waiting`, too: when this raises, because there is
        no stack or no memory left, the next call of any purgatory goes on.
        """
        left = self.current is not None or bool(self._deferred)
        self.waiting = left or bool(self._checks)
        if (left and self.level < SETTLING) or (self.waiting and self.level == IDLE):
            loop = None if self._loop is None else self._loop()
            if loop is not None:
                # A loop that is closed raises. Nobody waits there any more.
                with suppress(RuntimeError):
                    loop.call_soon(self.resume)

    def resume(self) -> None:
        """Do what an exception has left undone."""
        if self.level == IDLE and self.waiting:
            self.go_on(IDLE)


_queues: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, ActionQueue]] = (
    weakref.WeakKeyDictionary()
)


def action_queue_of(loop: asyncio.AbstractEventLoop) -> ActionQueue:
    """The one queue of `loop`."""
    queue = _queues.get(loop)
    if queue is None:
        queue = _queues[loop] = ActionQueue(loop)
    return queue
