"""The facade: what users call, and what they await."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeVar, cast, overload

from anyio import TASK_STATUS_IGNORED

from purgatory._conditions import PredicateOperation
from purgatory._core.operation import NO_KEY
from purgatory._core.outcome import CANCELLED, EXPIRED
from purgatory._core.synchronous_purgatory import SynchronousPurgatory, check_argument
from purgatory._core.timer import DEFAULT_WHEEL_SIZE
from purgatory._core.waiting import check_loop
from purgatory._core.watch_list import Chunk, operations_at
from purgatory.bulk import Pace, Sweep
from purgatory.observer import PurgatoryStatistics
from purgatory.reaper import Lifecycle
from purgatory.reports import Reporter

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from purgatory.delayed_operation import DelayedOperation
    from purgatory.observer import KeyObserver, Observer

T = TypeVar("T")

# The default of `operations`, because None is a key like any other.
_ALL_KEYS: Final = object()


class Purgatory(SynchronousPurgatory):
    """Holds operations until a key they watch is checked and their condition holds, or until they expire.

    Use ``async with Purgatory("fetch") as purgatory``, or `start` and `aclose`, or `run` in a task group of
    your own. Call everything from the event loop's thread, except `check_and_complete_threadsafe`.

    Operations expire with a resolution of `tick` seconds: never before their deadline, and less than a tick
    after it while the loop is idle. `wheel_size` is the number of slots of a level of the timing wheel. While
    `max_pending` operations wait, a further one is refused. The purgatory tells its `observers` what happens.
    With `debug` it looks for more mistakes, which takes time (see the page on debugging). With None it does
    so when the event loop is in debug mode.

    Bulk work (expiring, `sweep`, closing) holds the loop for `slice_seconds` at a time, together with the
    tasks that it wakes. Where other work holds the loop for longer between two slices, the next slice takes
    as long as that did. So bulk work gets half of a busy loop. Clients of long polls ask again at once. If
    more than 1 in 8 of the clients that a sweep or closing has woken ask again, the others come first: the
    work pauses only after 200 times `slice_seconds`, and the tasks that it wakes do not count. (The page on
    the architecture says why.)

    Parking and completing cost O(keys of the operation), however many operations are pending.

    Raises ValueError for a tick, a slice or a max_pending that is not positive, or a wheel_size below 2.
    """

    __slots__ = ("_lifecycle",)

    if TYPE_CHECKING:

        def check_and_complete(self, key: Hashable, limit: int | None = None) -> int: ...

    def __init__(
        self,
        name: str = "purgatory",
        *,
        tick: float = 0.001,
        wheel_size: int = DEFAULT_WHEEL_SIZE,
        max_pending: int | None = None,
        slice_seconds: float = 0.005,
        observers: Iterable[Observer] = (),
        debug: bool | None = None,
    ) -> None:
        super().__init__(
            name,
            tick=tick,
            wheel_size=wheel_size,
            max_pending=max_pending,
            slice_seconds=slice_seconds,
            observers=observers,
            reporter=Reporter(name),
        )
        self._lifecycle = Lifecycle(self._engine, debug)

    def start(self) -> None:
        """Open the purgatory on the running event loop. Its reaper is a task of its own until `aclose`.

        Raises RuntimeError when it is open already or no loop is running, PurgatoryClosed when it was closed.
        """
        self._lifecycle.start()

    def _open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open the purgatory on `loop` without a reaper, as `purgatory.testing` does with its clocks."""
        self._lifecycle.open_on(loop)

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Open the purgatory and be its reaper: ``await task_group.start(purgatory.run)``.

        Returns when the purgatory is closed. A cancellation of this task closes the purgatory as `aclose`
        does, and is raised again after that.
        """
        await self._lifecycle.run(task_status)

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
        """Take no more operations, and end the pending ones: expire them, or withdraw them.

        The tasks that await a withdrawn operation get OperationWithdrawn. Returns when all operations have
        ended. The evaluations of async conditions, which are cancelled, have ended by then, and so has the
        reaper's task that `start` made. A task that runs `run` has not: `run` returns in one of the next
        turns of the loop. A second call of `aclose` waits, too. When the calling task is cancelled meanwhile,
        the rest ends in one go.
        """
        await self._lifecycle.aclose(CANCELLED if cancel_pending else EXPIRED)

    async def sweep(self, key: Hashable) -> int:
        """Check `key` as `check_and_complete` does, in slices. Use it for keys with thousands of watchers.

        It yields to the loop every `slice_seconds`, and less often on a busy loop. When the task that awaits
        it is cancelled, the loop checks the rest in its next turn, in one go. So no operation misses the
        change that the sweep was for.
        """
        check_loop(self._engine, self)
        sweep = Sweep(self._checker, key)
        pace = Pace(self.timer.slice_seconds)
        try:
            while sweep.step(pace.seconds):
                await pace.pause()
                pace.heed(sweep.completed, sweep.newcomers())
        except BaseException:
            sweep.abandon()
            raise
        return sweep.completed

    @property
    def open(self) -> bool:
        """Whether it takes operations."""
        return self._engine.open

    @property
    def closing(self) -> bool:
        """Whether it is closing or closed, and never takes operations again."""
        return self._engine.closing

    def statistics(self) -> PurgatoryStatistics:
        """The present figures, O(1). Any thread may call it."""
        engine = self._engine
        return PurgatoryStatistics(
            pending=engine.pending,
            max_pending=engine.max_pending,
            watched=engine.watchers.watched,
            keys=len(engine.watchers),
            completed=engine.completed,
            expired=engine.expired,
            expired_untried=engine.expired_untried,
            missed_changes=0 if engine.debugger is None else engine.debugger.missed,
            cancelled=engine.cancelled,
            failed=engine.failed,
            refused=engine.refused,
            wakeups=self.timer.wakeups,
            slices=engine.slices + self.timer.slices,
        )

    def operations(self, key: Hashable = _ALL_KEYS) -> list[DelayedOperation[Any]]:
        """The pending operations that watch `key`, in order. Without a key, all pending operations."""
        watchers = self._engine.watchers
        found = watchers.operations() if key is _ALL_KEYS else watchers.watching(key)
        return cast("list[DelayedOperation[Any]]", found)

    def watching(self, key: Hashable, limit: int) -> list[DelayedOperation[Any]]:
        """The first `limit` of the operations that watch `key`, O(limit)."""
        check_argument("limit", limit, int, "an int")
        return cast("list[DelayedOperation[Any]]", self._engine.watchers.watching(key, limit))

    def count_watching(self, key: Hashable, limit: int) -> int:
        """How many operations watch `key`. Counting stops at `limit` or a little above it.

        The cost is O(limit / CHUNK_LENGTH): one addition for each chunk of the watch list.
        """
        check_argument("limit", limit, int, "an int")
        place = self._engine.watchers.on(key)
        return place.count(limit) if isinstance(place, Chunk) else len(operations_at(place, 1))

    def watched_keys(self, limit: int) -> list[Hashable]:
        """At most `limit` of the keys that have watchers now, O(limit).

        When there are more, half of the answer is the keys that have been watched for longest, and half is
        the newest keys. A key that raised, or had changed, as its last operation left is among them, too.
        """
        check_argument("limit", limit, int, "an int")
        table = self._engine.watchers.table
        late = limit // 2 if len(table) > limit else 0
        keys = [*islice(table, limit - late), *islice(reversed(table), late)]
        return [key for key in keys if key is not NO_KEY] if NO_KEY in table else keys

    def add_observer(self, observer: Observer) -> None:
        """Tell `observer`, after the others, what happens from now on.

        The first observer is not told of operations that wait already, because nobody noted when they came.
        """
        engine = self._engine
        engine.observers.tell((*engine.observers.all, observer))
        engine.observed = True

    def remove_observer(self, observer: Observer) -> bool:
        """Tell `observer` nothing any more. False when it is none of the observers."""
        # By identity, because a user's class may define any equality.
        engine = self._engine
        others = tuple([each for each in engine.observers.all if each is not observer])
        removed = len(others) < len(engine.observers.all)
        engine.observers.tell(others)
        engine.observed = bool(others) or engine.debugger is not None
        return removed

    def observe_keys(self, observer: KeyObserver | None) -> None:
        """Tell `observer` of the first watcher and of the last one of each key. None ends that.

        It is not told of the keys that are watched already: `watched_keys` has them. Raises RuntimeError when
        there is another one.
        """
        engine = self._engine
        if observer is not None and engine.key_observer is not None:
            raise RuntimeError(f"the keys of purgatory {self.name!r} have an observer: it can have one only")
        engine.key_observer = observer

    @overload
    async def wait_until(
        self,
        predicate: Callable[[], Awaitable[T | Literal[False] | None]],
        keys: Iterable[Hashable],
        timeout: float | None = None,
        *,
        every: float | None = None,
    ) -> T: ...
    @overload
    async def wait_until(
        self,
        predicate: Callable[[], T | Literal[False] | None],
        keys: Iterable[Hashable],
        timeout: float | None = None,
        *,
        every: float | None = None,
    ) -> T: ...
    async def wait_until(
        self,
        predicate: Callable[[], Any],
        keys: Iterable[Hashable],
        timeout: float | None = None,
        *,
        every: float | None = None,
    ) -> Any:
        """The first truthy value of `predicate`, which is called now and at every check of a key.

        Its type is the type of the predicate's values without None and False, such as int for
        ``lambda: prices.get("tea")`` with prices in a ``dict[str, int]``.

        A predicate only looks, because the task that waits may be cancelled when it holds. What has to be
        taken is taken by an operation, whose `on_unclaimed` gives it back. Where the predicate comes true by
        time, `every` has it called every so many seconds, too.

        The predicate may be async, or return an awaitable. Then it is evaluated in a task, with one
        evaluation at a time. After any number of checks during an evaluation, one more follows. So a change
        that lasts, and is followed by a check, is not missed. But trying and watching are no longer one step:
        the value may be out of date when it is returned. `AsyncDelayedOperation` says what replaces that.
        When the wait ends, a running evaluation is cancelled, and this returns when that has ended.

        Raises TimeoutError when no such value comes within `timeout` seconds, or before the purgatory closes.
        Raises OperationWithdrawn when `cancel_for_key` or ``aclose(cancel_pending=True)`` ends the wait,
        PurgatoryClosed or PurgatoryFull as `try_complete_else_watch` does, and whatever the predicate raises.
        """
        check_loop(self._engine, predicate)
        if not callable(predicate):
            raise TypeError(
                f"wait_until takes a function to call, not {predicate!r}: put `lambda:` before it"
            )
        operation: PredicateOperation[Any] = PredicateOperation(self._checker, predicate, timeout, every)
        try:
            value = await self.try_complete_else_watch(operation, keys)
        finally:
            if operation.evaluator is not None:
                await operation.evaluator.ended()
        if operation.expired:
            raise operation.timeout_error()
        return value

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse copy.copy, copy.deepcopy and pickle: operations refer to this purgatory and to no other."""
        raise TypeError(f"cannot copy or pickle {self!r}: make a new one")
