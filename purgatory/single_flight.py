"""Loads a value once for all who ask for it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from purgatory._cancellation import Foreign
from purgatory._core.operation import end
from purgatory._core.outcome import CANCELLED, Given
from purgatory._core.waiting import check_loop
from purgatory.errors import safe_repr
from purgatory.ready_made import DelayedValue, limit

if TYPE_CHECKING:
    from purgatory.purgatory import Purgatory

T = TypeVar("T")

# The cause, for the message of OperationWithdrawn.
BY_LOAD: Final = Given("because the load was cancelled")


class SingleFlight(Generic[T]):
    """Loads a value once for all who ask for it at the same time: ``SingleFlight[str](purgatory)``.

    It keeps nothing: neither values nor errors. Look into your own cache before you call `get`. Close the
    purgatory to end all loads. Closing returns when they have ended.
    """

    __slots__ = ("_flights", "_purgatory")

    def __init__(self, purgatory: Purgatory) -> None:
        self._purgatory = purgatory
        # The loads that callers may join, by their keys.
        self._flights: dict[Hashable, Flight[T]] = {}

    def __repr__(self) -> str:
        return f"<SingleFlight loading={len(self._flights)}>"

    async def get(self, key: Hashable, load: Callable[[], Awaitable[T]], timeout: float | None = None) -> T:
        """The value that `load` returns. While a load with an equal key is under way, wait for that one.

        The load runs in a task of its own, in the context (`contextvars`) of the first caller. All who wait
        get its value, or its error. Each has a timeout of its own, in seconds. A caller that is cancelled, or
        whose timeout is over, does not stop the load for the others. When the last one has gone, the load is
        cancelled, because nobody wants its value. An error that a load raises after that is logged.

        Raises TimeoutError when the timeout, or closing, ends the wait, and OperationWithdrawn when somebody
        else cancels the load. Raises PurgatoryClosed, PurgatoryNotOpen and PurgatoryFull as
        `Purgatory.try_complete_else_watch` does. Then nothing is loaded.
        """
        check_loop(self._purgatory._engine, self)
        if not callable(load):
            raise TypeError(f"load must be an async function, not {safe_repr(load)}: put `lambda:` before it")
        joined = self._flights.get(key)
        flight = Flight[T](key) if joined is None else joined
        caller = self._purgatory.try_complete_else_watch(DelayedLoad(flight, timeout))
        flight.callers[caller] = None
        try:
            if joined is None and not caller.done:
                self._start(flight, load)
            return await caller
        finally:
            # It has not ended when the load could not be started.
            caller.cancel()
            del flight.callers[caller]
            if not flight.callers:
                self._forget(flight)
                if flight.task is not None:
                    flight.task.cancel()

    def _start(self, flight: Flight[T], load: Callable[[], Awaitable[T]]) -> None:
        # First, because an eager task may be done when `create_task` returns.
        self._flights[flight.key] = flight
        loading = _run(flight, load)
        try:
            flight.task = asyncio.get_running_loop().create_task(loading, name=repr(flight))
        except BaseException:
            loading.close()
            raise
        self._purgatory._engine.evaluations.add(flight.task)
        flight.task.add_done_callback(partial(self._land, flight))

    def _land(self, flight: Flight[T], task: asyncio.Task[T]) -> None:
        """Hand the result to all who wait. From now on, callers start another load."""
        engine = self._purgatory._engine
        engine.evaluations.discard(task)
        self._forget(flight)
        callers = tuple(flight.callers)
        error = None if task.cancelled() else task.exception()
        got = 0
        if isinstance(error, Exception):
            got = sum([caller.fail(error) for caller in callers])
        elif task.cancelled() or error is not None:
            for caller in callers:
                end(caller, CANCELLED, BY_LOAD)
        else:
            value = task.result()
            for caller in callers:
                caller.complete(value)
        # The loop has raised a KeyboardInterrupt and a SystemExit already.
        if error is not None and not got and not isinstance(error, (KeyboardInterrupt, SystemExit)):
            engine.reporter.report(f"{flight} failed, and nobody got its error", error)

    def _forget(self, flight: Flight[T]) -> None:
        # When all had left, a later caller has started another load.
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]


@final
class Flight(Generic[T]):
    """A load that is under way, and its callers in order."""

    __slots__ = ("callers", "key", "task")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.callers: dict[DelayedLoad[T], None] = {}
        self.task: asyncio.Task[T] | None = None

    def __repr__(self) -> str:
        return f"the load of {safe_repr(self.key)}"


@final
class DelayedLoad(DelayedValue[T]):
    """One who waits for a flight. It has no key, which the key observer of a relay would not know."""

    __slots__ = ("_flight",)

    def __init__(self, flight: Flight[T], timeout: float | None) -> None:
        super().__init__(timeout)
        self._flight = flight

    def on_expiration(self) -> None:
        raise TimeoutError(f"{self._flight} did not end {limit(self)}")


async def _run(flight: Flight[Any], load: Callable[[], Awaitable[T]]) -> T:
    with Foreign(repr(flight)):
        return await load()
