"""What may run inside what, for all purgatories of one event loop.

A user's code runs in the middle of the core: hooks, methods of keys, finalizers, observers. It may call
anything on any purgatory. So the purgatories of a loop share a level, which says what they are doing. A call
that comes in the middle of other work does at once what disturbs nothing. The rest of it waits in the queue.

| level    | what is going on                       | a check | an end                        | parking |
|----------|----------------------------------------|---------|-------------------------------|---------|
| IDLE     | nothing: the call is the outermost one | at once | at once                       | at once |
| TRYING   | conditions are looked at               | waits   | at once                       | at once |
| SETTLING | hooks of an operation that has ended   | waits   | decided and forgotten at once | at once |
| WRITING  | the timer or the watch lists change    | waits   | decided at once               | waits   |

1. An end is decided at once on every level. So an operation ends once, and each hook sees what has ended.
2. On SETTLING, the hooks of the new end wait until the present hook is over. So a chain of operations that
   complete each other needs no stack. (Kafka's overflowed at about 900: KAFKA-17509, KAFKA-17703.)
3. On WRITING, nothing else is written. The methods of a key and finalizers run there, and an entry that they
   changed would be lost. A new timeout waits, too.
4. Checks wait for the outermost call, which returns how many operations they have completed. Checks that
   ask for checks again and again, while nothing ends, go on in the loop's next turn.

A call notes the level that it finds, sets its own, and goes back with `leave` in a `finally`. Then `leave`
does what waits and may be done on that level. After an exception, the loop does it in its next turn.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast, final

from purgatory._core._mypyc import i64
from purgatory._core.operation import NO_LIMIT, Operation
from purgatory.errors import safe_repr

if TYPE_CHECKING:
    from purgatory._core.checker import Checker

IDLE: Final = 0
TRYING: Final = 1
SETTLING: Final = 2
WRITING: Final = 3

# So many checks in a row may each be asked for by the check before it, while nothing ends. Debug mode reports
# the fourth one: two conditions that check each other's key have asked twice by then.
ROUNDS: Final = 100
DEBUG_ROUNDS: Final = 3

# When the loop's next turn ends nothing either, they pause for so many seconds. So timeouts end them in
# virtual time, too, where the clock stands still while the loop has anything to run.
PAUSE: Final = 0.001


@final
class Check:
    """A check of one key that somebody has asked for."""

    __slots__ = ("asker", "checker", "key", "limit", "round", "started")

    def __init__(self, checker: Checker, key: Hashable, limit: i64, queue: ActionQueue) -> None:
        self.checker = checker
        self.key = key
        self.limit = limit
        self.started = False
        # The number of checks in a row that have led to this one while nothing ended, and who asked for it.
        self.round: i64 = queue.round + 1
        self.asker = queue.tried if queue.round else None


@final
class ActionQueue:
    """The level of one event loop, and the ends and checks that wait for another level.

    A check that is asked for twice before it starts runs once. One with a limit is never merged with another:
    two permits that are handed over one by one are two.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # A weak reference, because the table below would keep every loop alive.
        self._loop = weakref.ref(loop)
        self.level: i64 = IDLE
        self.waiting = False
        # The round of the check that is under way, and 0 for the outermost one, and when something has ended.
        self.round: i64 = 0
        # The operation that it tries.
        self.tried: Operation | None = None
        # Whether the loop is going to call `resume`, and whether it has to pause before it does.
        self._resuming = False
        self._fruitless = False
        # Operations for which something waits. Their state says what.
        self._deferred: deque[Operation] = deque()
        # The checks that wait, in the order in which somebody asked for them.
        self._checks: deque[Check] = deque()
        # The checks that have not started, and perhaps some that have.
        self._asked: dict[tuple[Checker, Hashable], Check] = {}

    def leave(self, level: i64, whole: bool) -> int:
        """Go back to `level`. Returns how many operations the checks that waited have completed.

        `whole` says whether the work that ends here has raised nothing.
        """
        self.level = level
        if self.waiting and level < SETTLING:
            if whole:
                return self._go_on(level)
            self._resume_later()
        return 0

    def defer(self, operation: Operation) -> None:
        """Park `operation`, reschedule it or finish its end, when no hook runs and nothing is written."""
        self._deferred.append(operation)
        self.waiting = True

    def ask(self, checker: Checker, key: Hashable, limit: i64) -> None:
        """Have `checker` check `key` as soon as the outermost call gets to it."""
        if limit != NO_LIMIT:
            # The look-up below raises for an unhashable key, and this does the same.
            hash(key)
            self.add(checker, key, limit)
            return
        asked = self._asked.get((checker, key))
        if asked is None or asked.started:
            check = Check(checker, key, NO_LIMIT, self)
            self._asked[checker, key] = check
            self._checks.append(check)
            self.waiting = True

    def add(self, checker: Checker, key: Hashable, limit: i64) -> None:
        """Do what `ask` does, but call no method of the key, and merge the check with no other."""
        self._checks.append(Check(checker, key, limit, self))
        self.waiting = True

    def resume(self) -> None:
        """Do what waits, as the outermost call."""
        self._resuming = False
        if self.level == IDLE and self.waiting:
            self._go_on(IDLE)

    def _resume_later(self) -> None:
        # Each engine that has anything in this queue keeps the loop alive.
        loop = cast(asyncio.AbstractEventLoop, self._loop())
        if self._resuming:
            return
        # A loop that is closed raises. Nobody waits there any more.
        with suppress(RuntimeError):
            if self._fruitless:
                loop.call_at(loop.time() + PAUSE, self.resume)
            else:
                loop.call_soon(self.resume)
            self._resuming = True

    def _go_on(self, level: i64) -> int:
        completed = 0
        whole = False
        try:
            self._settle()
            while level == IDLE and self._checks:
                if self._checks[0].round > ROUNDS:
                    self._put_off()
                    break
                completed += self._check()
            else:
                self._fruitless = False
            whole = True
        finally:
            self.level = level
            self.waiting = bool(self._deferred or self._checks)
            if self.waiting and (level == IDLE or not whole):
                self._resume_later()
                self._fruitless = whole
        return completed

    def _put_off(self) -> None:
        """The checks that wait go on in the loop's next turn. There each counts as a first one."""
        named = self._checks[0]
        for check in self._checks:
            # By identity, because the methods of a key may raise.
            if check.asker is not None and [key for key in check.asker.keys if key is check.key]:
                # It leads back to the operation that has asked for it.
                named = check
            check.round = 0
        named.checker.engine.reporter.warn_of_rounds(named.key, named.asker)

    def _settle(self) -> None:
        """Look at the deferred operations. Raises the first exception of these when all are done."""
        raised: BaseException | None = None
        while self._deferred:
            self.level = SETTLING
            operation = self._deferred.popleft()
            try:
                # An operation without an engine has ended, and is in no book.
                if operation._owner is not None:
                    operation._owner.attend(operation)
            except BaseException as error:
                if raised is None:
                    raised = error
        if raised is not None:
            raise raised

    def _check(self) -> int:
        self.level = TRYING
        check = self._checks.popleft()
        check.started = True
        self.round = check.round
        if check.round == DEBUG_ROUNDS and check.checker.engine.debugger is not None:
            check.checker.engine.reporter.warn_of_rounds(check.key, check.asker)
        if not self._checks:
            self._asked.clear()
        try:
            place = check.checker.engine.watchers.on(check.key)
            return check.checker.run(check.key, place, check.limit)
        except Exception as error:
            # The key was good when it was asked for, and now it raises. Others go on.
            check.checker.engine.reporter.report(f"the check of {safe_repr(check.key)} failed", error)
            return 0
        finally:
            self.round = 0
            self.tried = None


_queues: Final = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, ActionQueue]()


def action_queue_of(loop: asyncio.AbstractEventLoop) -> ActionQueue:
    """The one queue of `loop`."""
    queue = _queues.get(loop)
    if queue is None:
        queue = _queues[loop] = ActionQueue(loop)
    return queue
