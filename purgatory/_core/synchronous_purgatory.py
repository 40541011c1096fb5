"""What a service calls often: offers, checks, and the ends of all who watch a key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from purgatory._core._mypyc import mypyc_attr
from purgatory._core.checker import Checker
from purgatory._core.engine import NO_MAXIMUM, Engine
from purgatory._core.operation import NO_LIMIT, Operation, end, failure_of
from purgatory._core.outcome import BY_KEY, CANCELLED, COMPLETED, FAILED, PENDING, Given
from purgatory._core.timer import DEFAULT_WHEEL_SIZE, Timer
from purgatory.errors import safe_repr

if TYPE_CHECKING:
    from purgatory.delayed_operation import DelayedOperation
    from purgatory.observer import Observer

Op = TypeVar("Op", bound=Operation)
T = TypeVar("T")


@mypyc_attr(allow_interpreted_subclasses=True)
class SynchronousPurgatory:
    """A `Purgatory` without its coroutines, which are never compiled, and without what is called seldom."""

    __slots__ = ("_checker", "_engine", "name", "timer")

    def __init__(
        self,
        name: Any = "purgatory",
        *,
        tick: Any = 0.001,
        wheel_size: Any = DEFAULT_WHEEL_SIZE,
        max_pending: Any = None,
        slice_seconds: Any = 0.005,
        observers: Iterable[Observer] = (),
        reporter: Any,
    ) -> None:
        check_argument("name", name, str, "a str")
        check_argument("tick", tick, (int, float), "a number of seconds")
        check_argument("wheel_size", wheel_size, int, "an int")
        check_argument("slice_seconds", slice_seconds, (int, float), "a number of seconds")
        if max_pending is not None:
            check_argument("max_pending", max_pending, int, "an int or None")
        self.name: str = name
        self.timer = Timer(tick=tick, wheel_size=wheel_size, slice_seconds=slice_seconds)
        self._engine = Engine(name, self.timer, reporter, max_pending, tuple(observers))
        self._checker = Checker(self._engine)

    def __repr__(self) -> str:
        engine = self._engine
        state = "open" if engine.open else "closed" if engine.closing else "new"
        pending, keys = engine.pending, len(engine.watchers)
        return f"<Purgatory {self.name!r} {state} pending={pending} keys={keys}>"

    @final
    def try_complete_else_watch(self, operation: Op, keys: Iterable[Hashable] = ()) -> Op:
        """Try `operation` once. If its condition does not hold, park it on `keys` until its timeout.

        Returns the operation. Awaiting is optional: its hooks run anyway. Nothing else runs between the try
        and the watching. So a change that is followed by a check of a key is never missed. A key named twice
        is watched once. The cost is O(keys), however many operations are pending.

        A `DelayedValue`, a `DelayedQuorum` and a `Session` need no keys, because nobody has to check them.

        Raises ValueError when there are no keys, TypeError when `keys` is a str or bytes, a key is not
        hashable or the class has no `try_complete`, RuntimeError when the operation was offered before,
        PurgatoryNotOpen or PurgatoryClosed when the purgatory is not open, and PurgatoryFull when the
        operation has to wait and `max_pending` operations wait already. Then nothing is kept of it.
        """
        return self._engine.offer(operation, keys)

    def check_and_complete(self, key: Hashable, limit: Any = None) -> int:
        """Try the operations that watch `key`, in order. Returns how many this call completed.

        It does not say which; record that in `on_complete`.

        With a `limit` it stops as soon as so many have completed: ``limit=1`` hands over one permit, first
        come first served. The number returned may exceed the limit, because it includes the checks that hooks
        have asked for. Raises ValueError for a limit below 1.

        In a hook, this returns 0 at once. The outermost call, in which the hook runs, does the check as soon
        as no hook is running, and counts what it completes. The cost is one try for each operation on the
        key. A key without watchers costs one look-up.

        Raises PurgatoryNotOpen before the purgatory is open. After closing it returns 0.
        """
        if limit is None:
            return self._checker.check(key, NO_LIMIT)
        check_argument("limit", limit, int, "an int or None")
        if limit < 1:
            raise ValueError(f"limit must be at least 1, or None for no limit, not {limit}")
        return self._checker.check(key, min(limit, NO_MAXIMUM))

    @final
    def check_and_complete_threadsafe(self, key: Hashable) -> None:
        """Have the loop check `key` soon. Any thread may call this, the loop's own included.

        However many calls come before the loop wakes, it wakes once and checks each distinct key once. So
        this takes no limit. Where you need one, use
        ``loop.call_soon_threadsafe(purgatory.check_and_complete, key, 1)``. Raises PurgatoryNotOpen before
        the purgatory is open. After closing it does nothing.
        """
        self._checker.signal(key)

    @final
    def watch_also(self, operation: DelayedOperation[Any], keys: Iterable[Hashable]) -> bool:
        """Try a pending operation once, and have it watch more keys, in one step. False when it is done.

        So no change is missed that came before the keys were added. On the new keys it stands behind those
        who wait already, and a check of such a key that is under way may try it. Keys that it watches already
        are passed by. Raises TypeError for wrong keys, and RuntimeError when the operation does not belong to
        this purgatory. Then it watches what it watched before. The cost is O(all its keys).
        """
        if operation.done:
            return False
        if operation._owner is not self._engine or operation._state is not PENDING:
            raise RuntimeError(f"{safe_repr(operation)} is not pending in purgatory {self.name!r}")
        return self._engine.watch_also(operation, keys)

    @final
    def complete_for_key(self, key: Hashable, value: T, kind: type[DelayedOperation[T]] | None = None) -> int:
        """Hand `value` to every operation that watches `key`, in order. Returns how many got it.

        It does what `complete(value)` does on each of them, in one call. With a `kind` it completes the
        operations of that class only, and a type checker finds a value of the wrong type:
        ``complete_for_key("tea", 3, DelayedValue[int])``. (At run time this is DelayedValue.)
        """
        found = self._all_on(key, kind)
        if not found:
            return 0
        given = Given(value)
        return sum([end(operation, COMPLETED, given) for operation in found])

    @final
    def fail_for_key(
        self, key: Hashable, error: Exception, kind: type[DelayedOperation[Any]] | None = None
    ) -> int:
        """End every operation that watches `key` with `error`, in order. Returns how many this has ended.

        It does what `fail(error)` does on each of them, in one call. Raises TypeError as that does.
        """
        failure_of(error)
        return sum([end(operation, FAILED, failure_of(error)) for operation in self._all_on(key, kind)])

    @final
    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation[Any]]:
        """Withdraw every operation that watches `key` from all its keys. Returns them, in order.

        No hook runs. The tasks that await them get OperationWithdrawn.
        """
        withdrawn = [operation for operation in self._all_on(key) if end(operation, CANCELLED, BY_KEY)]
        return cast("list[DelayedOperation[Any]]", withdrawn)

    @final
    def _all_on(self, key: Hashable, kind: Any = None) -> list[Operation]:
        """The operations of a `kind` that watch `key`, in order."""
        if self._engine.loop is not None:
            self._engine.check_thread()
        found = self._engine.watchers.watching(key)
        if kind is None or not found:
            return found
        made: Any = getattr(kind, "__origin__", kind)  # DelayedValue[int] is no class.
        return [operation for operation in found if isinstance(operation, made)]


def check_argument(name: str, given: Any, kind: Any, words: str) -> None:
    """Raise a TypeError that names the argument. Compiled code would name none."""
    if not isinstance(given, kind):
        raise TypeError(f"{name} must be {words}, not {given!r}")
