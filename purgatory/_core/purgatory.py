"""Layer 4: where operations wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from anyio import TASK_STATUS_IGNORED

from purgatory._core.accounting import Accounting
from purgatory._core.checks import Checks
from purgatory._core.operation import CANCELLED, EXPIRED, FAILED, NEW, PENDING, Failure, Operation, Owner, end
from purgatory._core.predicate_operation import PredicateOperation
from purgatory._core.reaper import Reaper
from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import DEFAULT_WHEEL_SIZE, Timer
from purgatory._core.timing import Timing
from purgatory._core.watchers import Watchers, hashable_keys, keys_at
from purgatory.errors import PurgatoryClosed, PurgatoryFull, PurgatoryNotOpen
from purgatory.statistics import PurgatoryStatistics

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from purgatory.delayed_operation import DelayedOperation
    from purgatory.observer import Observer

Op = TypeVar("Op", bound=Operation)
T = TypeVar("T")


@final
class Purgatory(Owner):
    """Holds operations until a key they watch is checked and their condition holds, or until they expire.

    ``async with Purgatory("fetch") as purgatory``, or `start` and `aclose`, or `run` in a task group of
    your own. Everything is called from the event loop's thread, but for `check_and_complete_threadsafe`.

    Operations expire with a resolution of `tick` seconds: never before their deadline, and less than a tick
    after it while the loop is idle. `wheel_size` is the number of slots of a level of the timing wheel. With
    `max_pending` operations waiting, a further one is refused. What is done in bulk (expiring, `sweep`,
    closing) lets the loop breathe every `slice_seconds`. `observers` are told what happens.

    Parking and completing cost O(keys of the operation), whatever the number of operations pending.

    Raises ValueError for a tick, slice or max_pending that is not positive, or a wheel_size below 2.
    """

    __slots__ = (
        "_accounting",
        "_actions",
        "_checks",
        "_max_pending",
        "_reaper",
        "_watchers",
        "name",
        "timer",
    )

    def __init__(
        self,
        name: str = "purgatory",
        *,
        tick: float = 0.001,
        wheel_size: int = DEFAULT_WHEEL_SIZE,
        max_pending: int | None = None,
        slice_seconds: float = 0.005,
        observers: Iterable[Observer] = (),
    ) -> None:
        if max_pending is not None and max_pending < 1:
            raise ValueError(f"max_pending must be at least 1, or None for no limit, not {max_pending!r}")
        self.name = name
        self.timer = Timer(tick=tick, wheel_size=wheel_size, slice_seconds=slice_seconds)
        self._max_pending = max_pending
        self._watchers = Watchers()
        self._accounting = Accounting(name, self.timer, tuple(observers))
        self._reaper = Reaper(name, self.timer, self._watchers, self._accounting, slice_seconds)
        self._checks = Checks(self._watchers, self._accounting, self._reaper, slice_seconds)
        # Of the loop, once it is open.
        self._actions = self._checks.actions

    def __repr__(self) -> str:
        state = "open" if self._reaper.open else "closed" if self._reaper.closing else "new"
        return (
            f"<Purgatory {self.name!r} {state} pending={self._accounting.pending} keys={len(self._watchers)}>"
        )

    # Opening and closing

    def start(self) -> None:
        """Open it on the running event loop; the reaper is a task of its own until `aclose`.

        Raises RuntimeError when it is open already or no loop is running, PurgatoryClosed when it was closed.
        """
        loop = asyncio.get_running_loop()
        self.open_on(loop)
        self._reaper.start(loop)

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Open it and be its reaper until cancelled or closed: ``await task_group.start(purgatory.run)``.

        When cancelled it closes as `aclose` does before it lets the cancellation go on.
        """
        self.open_on(asyncio.get_running_loop())
        await self._reaper.run(task_status)

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open it on `loop` without a reaper: for what drives the time by itself, see `purgatory.testing`."""
        self._reaper.open_on(loop)
        self._accounting.open_on(loop)
        self._checks.open_on(loop)
        self._actions = self._checks.actions

    async def __aenter__(self) -> Purgatory:
        self.start()
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose(cancel_pending=exception_type is not None)

    async def aclose(self, *, cancel_pending: bool = False) -> None:
        """Take no more operations, and end those that are pending: expire them now, or withdraw them.

        Returns when all of them are done and the reaper has ended. Calling it again waits for that, too. A
        cancellation of the caller does not stop it half way: what is left is then ended in one go.
        """
        await self._reaper.aclose(CANCELLED if cancel_pending else EXPIRED)

    # Parking

    def try_complete_else_watch(self, operation: Op, keys: Iterable[Hashable]) -> Op:
        """Try `operation` once; if its condition does not hold, let it wait on `keys` until its timeout.

        Returns the operation, which can be awaited or left alone. Nothing else runs between the try and the
        watching, so a change of the condition that is followed by a check of a key is never missed. A key
        named twice is watched once.

        Raises ValueError when there are no keys, TypeError when `keys` is a str or bytes or a key is not
        hashable, RuntimeError when the operation was offered before, PurgatoryClosed, and PurgatoryFull when
        the operation would have to wait; in all these cases nothing is kept of it.
        """
        given = hashable_keys(keys)
        if not self._reaper.open:
            if self._reaper.closing:
                raise PurgatoryClosed(f"purgatory {self.name!r} has been closed")
            raise PurgatoryNotOpen(f"purgatory {self.name!r} is not open: use `async with`, or start() it")
        try:
            fresh = operation._state is NEW and operation._owner is None
        except AttributeError:
            raise TypeError(
                f"{type(operation).__name__}.__init__ must call super().__init__(timeout)"
            ) from None
        if not fresh:
            raise RuntimeError(f"{operation!r} was offered before: make a new operation for each wait")
        operation._owner = self
        operation._watched = given
        if self._accounting.observed:
            timing = Timing()
            timing.offered = self.timer.clock()
            timing.tries = 1
            operation._timing = timing
        actions = self._actions
        actions.depth += 1
        # Any, because what an override returns does not matter: the operation's state says what happened.
        hooks: Any = operation
        try:
            try:
                hooks.try_complete()
            except BaseException as error:
                if self._checks.failed(operation, error):
                    raise
            if operation._state is NEW:
                self._park(operation, given)
        except Exception:
            # It is full, or a key cannot be compared with the others.
            operation._owner = None
            operation._watched = ()
            actions.leave()
            raise
        except BaseException:
            actions.abort()
            raise
        if actions.depth == 1 and actions.checks:
            actions.leave()
        else:
            actions.depth -= 1
        return operation

    def _park(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        timeout = operation._timeout
        # An eager task may have closed the purgatory while the operation was tried.
        if timeout <= 0 or not self._reaper.open:
            end(operation, EXPIRED)
            return
        accounting = self._accounting
        if self._max_pending is not None and accounting.pending >= self._max_pending:
            raise PurgatoryFull(f"purgatory {self.name!r} holds {accounting.pending} operations already")
        self._watchers.watch(operation, keys)
        accounting.parked += 1
        operation._parked = accounting.parked
        operation._state = PENDING
        accounting.pending += 1
        if timeout != inf and not self.timer.add(operation, timeout):
            end(operation, EXPIRED)

    async def wait_until(
        self, predicate: Callable[[], T], keys: Iterable[Hashable], timeout: float | None = None
    ) -> T:
        """The first truthy value of `predicate`, which is called now and whenever a key is checked.

        Raises TimeoutError when there is none within `timeout` seconds, and what the predicate raises.
        """
        condition = PredicateOperation(predicate, timeout)
        value = await self.try_complete_else_watch(condition, keys)
        if condition.expired:
            when = f"before {self.name!r} was closed" if self._reaper.closing else f"within {timeout} seconds"
            raise TimeoutError(f"{safe_repr(predicate)} did not hold {when}")
        return cast(T, value)

    # Checking

    def check_and_complete(self, key: Hashable) -> int:
        """Try the operations that watch `key`, first come first; how many this call completed.

        Within a hook the check is left to the outermost call, which runs it once the hooks under way are
        over and counts what it completed; here it returns 0. O(operations on the key) tries; a key that
        nobody watches costs one look-up.
        """
        return self._checks.check(key)

    async def sweep(self, key: Hashable) -> int:
        """`check_and_complete` for keys that very many watch: yields to the loop every `slice_seconds`.

        When the task that awaits it is cancelled, the rest is checked all the same, in one go, in the loop's
        next turn: a change must not go untold because the one who told of it has left.
        """
        return await self._checks.sweep(key)

    def check_and_complete_threadsafe(self, key: Hashable) -> None:
        """Have the loop check `key` soon; from any thread, also the loop's own.

        However many calls come before the loop wakes, it wakes once and checks each distinct key once.
        Raises RuntimeError before the purgatory is open. Once it is closed nobody waits, and nothing happens.
        """
        if self._reaper.closing:
            return
        signals = self._checks.signals
        if signals is None:
            raise RuntimeError(f"purgatory {self.name!r} is not open: use `async with`, or start() it")
        signals.signal(key)

    # Withdrawing and looking

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation[Any]]:
        """Withdraw every operation that watches `key`, from all its keys; those operations, in order."""
        withdrawn = [operation for operation in self._watchers.watching(key) if operation.cancel()]
        return cast("list[DelayedOperation[Any]]", withdrawn)

    def operations(self, key: Hashable = None) -> list[DelayedOperation[Any]]:
        """The operations pending now: those that watch `key`, first come first, or, without a key, all."""
        found = self._watchers.operations() if key is None else self._watchers.watching(key)
        return cast("list[DelayedOperation[Any]]", found)

    def statistics(self) -> PurgatoryStatistics:
        """The figures of this moment, O(1)."""
        accounting = self._accounting
        return PurgatoryStatistics(
            pending=accounting.pending,
            watched=self._watchers.watched,
            keys=len(self._watchers),
            completed=accounting.completed,
            expired=accounting.expired,
            cancelled=accounting.cancelled,
            failed=accounting.failed,
            wakeups=self.timer.wakeups,
            slices=accounting.slices + self.timer.slices,
        )

    def watched_keys(self, limit: int) -> list[Hashable]:
        """Keys that somebody watches now, at most `limit`: a bounded look at however many.

        Where there are more, one half are those watched for longest, the other those that came last.
        """
        return self._watchers.some_keys(limit)

    def watching(self, key: Hashable, limit: int) -> list[DelayedOperation[Any]]:
        """The first `limit` of the operations that watch `key`, O(limit)."""
        return cast("list[DelayedOperation[Any]]", self._watchers.watching(key, limit))

    def count_watching(self, key: Hashable, limit: int) -> int:
        """How many operations watch `key`, O(limit / 16); where it is `limit` or more, there may be more."""
        return self._watchers.count(key, limit)

    def add_observer(self, observer: Observer) -> None:
        """Have `observer` told what happens from now on, after those that are told already.

        But where it is the first, operations that wait already end untold: when they came, nobody noted.
        """
        self._accounting.tell(observer)

    # What its operations tell it

    def ending(self, operation: Operation) -> None:
        self._actions.depth += 1
        if operation._parked:
            self._watchers.unwatch(operation)
            if operation._bucket is not None:
                self.timer.remove(operation)
            self._accounting.pending -= 1

    def ended(self, operation: Operation) -> None:
        actions = self._actions
        try:
            self._accounting.finished(operation)
        except BaseException:
            # An observer's, and no Exception.
            actions.abort()
            raise
        if operation._state is FAILED:
            failure = cast(Failure, operation._outcome)
            if not isinstance(failure.exception, Exception):
                actions.abort()
                return
        if actions.depth == 1 and actions.checks:
            actions.leave()
        else:
            actions.depth -= 1

    def keys_of(self, operation: Operation) -> tuple[Hashable, ...]:
        return keys_at(operation._watched)

    def rescheduled(self, operation: Operation) -> None:
        if operation._timeout <= 0 or not self.timer.reschedule(operation, operation._timeout):
            end(operation, EXPIRED)
