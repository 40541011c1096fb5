"""Layer 4: where operations wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from anyio import TASK_STATUS_IGNORED, CancelScope

from purgatory.action_queue import ActionQueue, action_queue_of
from purgatory.condition import Condition
from purgatory.description import described
from purgatory.errors import PurgatoryClosed, PurgatoryFull, PurgatoryNotOpen
from purgatory.ledger import Ledger
from purgatory.operation import (
    CANCELLED,
    COMPLETED,
    EXPIRED,
    FAILED,
    NEW,
    PENDING,
    Failure,
    Keeper,
    Operation,
    OperationState,
    end,
    fail,
)
from purgatory.signals import Signals
from purgatory.statistics import PurgatoryStatistics
from purgatory.stay import Stay
from purgatory.timer import DEFAULT_WHEEL_SIZE, Timer, pause
from purgatory.watchers import Stretch, Watchers, hashable_keys, keys_at

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from purgatory.delayed_operation import DelayedOperation
    from purgatory.observer import Observer

Op = TypeVar("Op", bound=Operation)
T = TypeVar("T")


@final
class Purgatory(Keeper):
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
        "_actions",
        "_closed",
        "_closing",
        "_ledger",
        "_loop",
        "_max_pending",
        "_observed",
        "_open",
        "_reaper",
        "_signals",
        "_slice_seconds",
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
        self._slice_seconds = slice_seconds
        self._max_pending = max_pending
        self._watchers = Watchers()
        listeners = tuple(observers)
        self._ledger = Ledger(name, self.timer, listeners)
        self._observed = bool(listeners)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._actions = ActionQueue(None)
        self._reaper: asyncio.Task[None] | None = None
        self._open = False
        self._closing = False
        self._closed = asyncio.Event()
        self._signals: Signals | None = None

    def __repr__(self) -> str:
        state = "open" if self._open else "closed" if self._closing else "new"
        return f"<Purgatory {self.name!r} {state} pending={self._ledger.pending} keys={len(self._watchers)}>"

    # Opening and closing

    def start(self) -> None:
        """Open it on the running event loop; the reaper is a task of its own until `aclose`.

        Raises RuntimeError when it is open already or no loop is running, PurgatoryClosed when it was closed.
        """
        loop = asyncio.get_running_loop()
        self.open_on(loop)
        self._reaper = loop.create_task(self.timer.run(), name=f"{self.name} reaper")
        self._reaper.add_done_callback(self._reaper_ended)

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Open it and be its reaper until cancelled or closed: ``await task_group.start(purgatory.run)``.

        When cancelled it closes as `aclose` does before it lets the cancellation go on.
        """
        self.open_on(asyncio.get_running_loop())
        ended_by: BaseException | None = None
        try:
            task_status.started()
            await self.timer.run()
        except BaseException as error:
            ended_by = error
            if not isinstance(error, asyncio.CancelledError):
                self._reaper_failed(error)
        # Out here, because an await inside an except or finally leaks the exception where it is compiled.
        await self.aclose()
        if ended_by is not None:
            raise ended_by

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open it on `loop` without a reaper: for what drives the time by itself, see `purgatory.testing`."""
        if self._closing:
            raise PurgatoryClosed(f"purgatory {self.name!r} has been closed: make a new one")
        if self._open:
            raise RuntimeError(f"purgatory {self.name!r} is open already")
        self._loop = loop
        self._ledger.open_on(loop)
        self._signals = Signals(loop, self._check_signalled)
        self._actions = action_queue_of(loop)
        self.timer.start(loop)
        self._open = True

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
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        if not self._open:
            self._closed.set()
            return
        self._open = False
        self.timer.stop()
        endings = self._end_all(CANCELLED if cancel_pending else EXPIRED)
        try:
            with CancelScope(shield=True):
                for _ in endings:
                    self._ledger.slices += 1
                    await pause()
                if self._reaper is not None:
                    await asyncio.wait([self._reaper])
        finally:
            # Nothing is left of it but after a plain Task.cancel, which no shield stops.
            for _ in endings:
                pass
            self._closed.set()

    def _end_all(self, state: OperationState) -> Iterator[None]:
        """End everything that is pending, pausing after each slice."""
        first: BaseException | None = None
        until = self._time() + self._slice_seconds
        for key in self._watchers.watched_keys():
            place = self._watchers.on(key)
            while place is not None:
                try:
                    end(place.operations[0] if isinstance(place, Stretch) else place, state)
                except BaseException as error:
                    # It has to go up, but not before everybody has been told.
                    first = error if first is None else first
                if self._time() >= until:
                    yield
                    until = self._time() + self._slice_seconds
                place = self._watchers.on(key)
        if first is not None:
            raise first

    def _reaper_ended(self, reaper: asyncio.Task[None]) -> None:
        if reaper.cancelled():
            # Not by us: the loop is being torn down around an open purgatory.
            self._shut()
            for operation in self.operations():
                operation.cancel()
            return
        error = reaper.exception()
        if error is not None:
            self._reaper_failed(error)
            self._ledger.report(f"the reaper of purgatory {self.name!r} failed; it is closed", error)

    def _reaper_failed(self, error: BaseException) -> None:
        """Nothing expires any more: whoever waits must know."""
        self._shut()
        if not isinstance(error, Exception):
            # Raised in every waiting task, a KeyboardInterrupt would end the loop as many times.
            closed = PurgatoryClosed(f"the reaper of purgatory {self.name!r} failed: {described(error)}")
            closed.__cause__ = error
            error = closed
        for operation in self.operations():
            fail(operation, error)

    def _shut(self) -> None:
        self._open = False
        self._closing = True
        self.timer.stop()
        self._closed.set()

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
        if not self._open:
            if self._closing:
                raise PurgatoryClosed(f"purgatory {self.name!r} has been closed")
            raise PurgatoryNotOpen(f"purgatory {self.name!r} is not open: use `async with`, or start() it")
        try:
            fresh = operation._state is NEW and operation._keeper is None
        except AttributeError:
            raise TypeError(
                f"{type(operation).__name__}.__init__ must call super().__init__(timeout)"
            ) from None
        if not fresh:
            raise RuntimeError(f"{operation!r} was offered before: make a new operation for each wait")
        operation._keeper = self
        operation._watched = given
        if self._observed:
            stay = Stay()
            stay.offered = self.timer.clock()
            stay.tries = 1
            operation._stay = stay
        actions = self._actions
        actions.depth += 1
        # Any, because what an override returns does not matter: the operation's state says what happened.
        hooks: Any = operation
        try:
            try:
                hooks.try_complete()
            except BaseException as error:
                if self._try_failed(operation, error):
                    raise
            if operation._state is NEW:
                self._park(operation, given)
        except Exception:
            # It is full, or a key cannot be compared with the others.
            operation._keeper = None
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
        if timeout <= 0:
            end(operation, EXPIRED)
            return
        ledger = self._ledger
        if self._max_pending is not None and ledger.pending >= self._max_pending:
            raise PurgatoryFull(f"purgatory {self.name!r} holds {ledger.pending} operations already")
        self._watchers.watch(operation, keys)
        ledger.parked += 1
        operation._parked = ledger.parked
        operation._state = PENDING
        ledger.pending += 1
        if timeout != inf and not self.timer.add(operation, timeout):
            end(operation, EXPIRED)

    async def wait_until(
        self, predicate: Callable[[], T], keys: Iterable[Hashable], timeout: float | None = None
    ) -> T:
        """The first truthy value of `predicate`, which is called now and whenever a key is checked.

        Raises TimeoutError when there is none within `timeout` seconds, and what the predicate raises.
        """
        condition = Condition(predicate, timeout)
        value = await self.try_complete_else_watch(condition, keys)
        if condition.expired:
            when = f"before {self.name!r} was closed" if self._closing else f"within {timeout} seconds"
            raise TimeoutError(f"{described(predicate)} did not hold {when}")
        return cast(T, value)

    # Checking

    def check_and_complete(self, key: Hashable) -> int:
        """Try the operations that watch `key`, first come first; how many this call completed.

        Within a hook the check is left to the outermost call, which runs it once the hooks under way are
        over and counts what it completed; here it returns 0. O(operations on the key) tries; a key that
        nobody watches costs one look-up.
        """
        actions = self._actions
        if actions.depth:
            # Even if nobody watches it now: the operation that is just being tried may be about to.
            actions.ask(self, key)
            return 0
        if self._watchers.on(key) is None:
            if self._observed:
                self._ledger.checked(key, 0, 0)
            return 0
        actions.depth = 1
        try:
            completed = self.run_check(key)
        except BaseException:
            actions.abort()
            raise
        return completed + actions.leave()

    async def sweep(self, key: Hashable) -> int:
        """`check_and_complete` for keys that very many watch: yields to the loop every `slice_seconds`.

        When the task that awaits it is cancelled, the rest is checked all the same, in one go, in the loop's
        next turn: a change must not go untold because the one who told of it has left.
        """
        limit = self._ledger.parked
        tried = completed = latest = 0
        place = self._watchers.on(key)
        if not isinstance(place, Stretch):
            return self.check_and_complete(key)
        stretch: Stretch | None = place
        actions = self._actions
        while True:
            actions.depth += 1
            try:
                until = self._time() + self._slice_seconds
                while stretch is not None and self._time() < until:
                    latest, tries, completions = self._try_stretch(stretch, latest, limit, until)
                    tried += tries
                    completed += completions
                    if not latest:
                        stretch = stretch.following
            except BaseException:
                actions.abort()
                raise
            completed += actions.leave()
            if stretch is None:
                break
            self._ledger.slices += 1
            try:
                await pause()
            except BaseException:
                self.check_and_complete_threadsafe(key)
                if self._observed:
                    self._ledger.checked(key, tried, completed)
                raise
        if self._observed:
            self._ledger.checked(key, tried, completed)
        return completed

    def check_and_complete_threadsafe(self, key: Hashable) -> None:
        """Have the loop check `key` soon; from any thread, also the loop's own.

        However many calls come before the loop wakes, it wakes once and checks each distinct key once.
        Raises RuntimeError before the purgatory is open. Once it is closed nobody waits, and nothing happens.
        """
        if self._closing:
            return
        if self._signals is None:
            raise RuntimeError(f"purgatory {self.name!r} is not open: use `async with`, or start() it")
        self._signals.signal(key)

    def _check_signalled(self) -> None:
        actions = self._actions
        actions.depth += 1
        for key in cast(Signals, self._signals).take():
            actions.ask(self, key)
        actions.leave()

    def run_check(self, key: Hashable) -> int:
        # Operations parked from here on are not of this pass.
        limit = self._ledger.parked
        tried = completed = 0
        place = self._watchers.on(key)
        if isinstance(place, Stretch):
            stretch: Stretch | None = place
            while stretch is not None:
                _, tries, completions = self._try_stretch(stretch, 0, limit, inf)
                tried += tries
                completed += completions
                stretch = stretch.following
        elif place is not None:
            tried = 1
            completed = 1 if self._try(place, key) else 0
        if self._observed:
            self._ledger.checked(key, tried, completed)
        return completed

    def _try_stretch(self, stretch: Stretch, after: int, limit: int, until: float) -> tuple[int, int, int]:
        """Try the operations of one stretch parked after number `after`, up to `limit`, until a loop's time.

        Returns the number of the last one tried when the time ran out, else 0; how many were tried; and how
        many of them completed.
        """
        tried = completed = 0
        for operation in stretch.operations.copy():
            number = operation._parked
            if number > limit:
                break
            # The hooks of those before it may have ended it.
            state: OperationState = operation._state
            if number > after and state is PENDING:
                tried += 1
                if self._try(operation, stretch.key):
                    completed += 1
                if until != inf and self._time() >= until:
                    return number, tried, completed
        return 0, tried, completed

    def _try(self, operation: Operation, key: Hashable) -> bool:
        """Try one that watches `key`; whether it is completed now."""
        if self._observed:
            try:  # noqa: SIM105  # suppress() would take longer than all the rest of this
                operation._stay.tries += 1
            except AttributeError:
                # Offered before there was an observer.
                pass
        hooks: Any = operation
        try:
            hooks.try_complete()
        except BaseException as error:
            if self._try_failed(operation, error):
                # Those behind it have still to be checked.
                self._actions.ask(self, key)
                raise
        return operation._state is COMPLETED

    def _try_failed(self, operation: Operation, error: BaseException) -> bool:
        """`try_complete` raised: that ends this operation and no other. Whether `error` has to go up."""
        if not fail(operation, error) and isinstance(error, Exception):
            self._ledger.report(f"{described(operation)} was done when its try_complete() raised", error)
        return not isinstance(error, Exception)

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
        ledger = self._ledger
        return PurgatoryStatistics(
            pending=ledger.pending,
            watched=self._watchers.watched,
            keys=len(self._watchers),
            completed=ledger.completed,
            expired=ledger.expired,
            cancelled=ledger.cancelled,
            failed=ledger.failed,
            wakeups=self.timer.wakeups,
            slices=ledger.slices + self.timer.slices,
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
        self._ledger.tell(observer)
        self._observed = True

    # What its operations tell it

    def ending(self, operation: Operation) -> None:
        self._actions.depth += 1
        if operation._parked:
            self._watchers.unwatch(operation)
            if operation._bucket is not None:
                self.timer.remove(operation)
            self._ledger.pending -= 1

    def ended(self, operation: Operation) -> None:
        actions = self._actions
        try:
            self._ledger.finished(operation)
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

    def _time(self) -> float:
        return cast(asyncio.AbstractEventLoop, self._loop).time()
