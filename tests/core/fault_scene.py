"""A scene for faults: two purgatories on one loop, and what has to hold after a fault."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from purgatory import (
    DelayedOperation,
    OperationState,
    OperationWithdrawn,
    Purgatory,
    PurgatoryClosed,
    PurgatoryFull,
)
from purgatory.observer import Timing
from tests.core.faults import Fault, FaultyLoop, lost
from tests.core.invariants import check_watchers, check_wheel

NEW, PENDING, COMPLETED, EXPIRED, CANCELLED, FAILED = OperationState

Act = Callable[[], object]


class Bad(Exception):
    """What a hook raises when it is asked to."""


class Key:
    """A key whose methods are points of the fault. Each look-up uses another object, so that both run."""

    def __init__(self, fault: Fault, name: str) -> None:
        self._fault = fault
        self.name = name

    def __hash__(self) -> int:
        self._fault.reach(at_a_key=True)
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        self._fault.reach(at_a_key=True)
        return isinstance(other, Key) and self.name == other.name

    def __repr__(self) -> str:
        return self.name


class Op(DelayedOperation[str]):
    """Its hooks are points of the fault. Its result is "done"."""

    def __init__(self, fault: Fault, timeout: float | None, *, opened: bool = False) -> None:
        super().__init__(timeout)
        self.fault = fault
        self.opened = opened
        self.trying: Act | None = None
        self.completing: Act | None = None
        self.late: TimeoutError | None = None
        self.given: str | None = None
        self.completions = 0
        self.expirations = 0

    def try_complete(self) -> bool:
        self.fault.reach()
        if self.trying is not None:
            self.trying()
        return self.opened and self.force_complete()

    def on_complete(self) -> str:
        self.completions += 1
        self.fault.reach()
        if self.completing is not None:
            self.completing()
        return "done" if self.given is None else "gives way"

    def give(self) -> None:
        """Complete with a value, which is not the one that `on_complete` returns."""
        self.given = "done"
        try:
            self.complete("done")
        finally:
            # The fault came first, so it ends in another way. No call here, because the fault may strike it.
            if self._state is PENDING:
                self.given = None

    def on_expiration(self) -> None:
        self.expirations += 1
        self.fault.reach()
        if self.late is not None:
            raise self.late


class Witness:
    """An observer whose methods are points of the fault."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self.finished: list[object] = []

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        self.finished.append(operation)
        self._fault.reach()

    def key_checked(self, purgatory: str, key: object, tried: int, completed: int, at: float) -> None:
        self._fault.reach()


class KeyWitness:
    """A key observer whose methods are points of the fault. It refuses a key by raising."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self.watched: set[str] = set()

    def key_watched(self, key: object) -> None:
        self._fault.reach()
        self.watched.add(str(key))

    def key_left(self, key: object) -> None:
        self.watched.discard(str(key))
        self._fault.reach()


class Scene:
    """Two purgatories on one loop. The act works on the first one. A bystander waits in the second one."""

    def __init__(self, fault: Fault, *, observed: bool, debug: bool) -> None:
        self.fault = fault
        self.loop = FaultyLoop(fault)
        # In debug mode every hook is reported as a slow one.
        self.loop.slow_callback_duration = 0.0
        self.witness = Witness(fault)
        observers = [self.witness] if observed else ()
        self.purgatory = Purgatory("struck", observers=observers, max_pending=50, debug=debug)
        self.key_witness = KeyWitness(fault)
        if observed:
            self.purgatory.observe_keys(self.key_witness)
        self.other = Purgatory("bystander")
        self.operations: list[Op] = []
        self.refused: list[Op] = []
        self.waiting: list[tuple[asyncio.Task[str], Op]] = []
        self.raised: BaseException | None = None
        # Tasks whose wake-up asyncio has lost.
        self.lost = 0
        self.complete(self._open())
        self.park("always", timeout=None, waiters=1)

    async def _open(self) -> None:
        self.purgatory.start()
        self.other.start()

    # What scenarios are made of

    def key(self, name: str) -> Key:
        return Key(self.fault, name)

    def made(self, timeout: float | None = 60, *, opened: bool = False) -> Op:
        operation = Op(self.fault, timeout, opened=opened)
        self.operations.append(operation)
        self.refused.append(operation)
        return operation

    def offer(self, operation: Op, *names: str) -> Op:
        self.purgatory.try_complete_else_watch(operation, [self.key(name) for name in names])
        self.refused.remove(operation)
        return operation

    def park(self, *names: str, timeout: float | None = 60, waiters: int = 0) -> Op:
        operation = self.offer(self.made(timeout), *names)
        for _ in range(waiters):
            self.waiting.append((self.loop.create_task(self._wait_for(operation)), operation))
        return operation

    async def _wait_for(self, operation: Op) -> str:
        return await operation

    # Running

    def complete(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Run the loop until `coroutine` is done, whatever the fault does to it."""
        task = self.loop.create_task(coroutine)
        task.add_done_callback(lambda _: self.loop.stop())
        while not task.done():
            self._attempt(self.loop.run_forever)
        if not task.cancelled():
            self._keep(task.exception())

    def _attempt(self, act: Act) -> None:
        try:
            act()
        except BaseException as error:
            self._keep(error)

    def _keep(self, error: BaseException | None) -> None:
        if error is not None:
            if not self.fault.caused(error) and not isinstance(error, (Bad, PurgatoryFull)):
                raise error
            self.raised = error

    def run(self, act: Act) -> None:
        """Do `act` under the fault. Where it is a coroutine function, the loop runs it."""
        self.turns()
        if asyncio.iscoroutinefunction(act):
            self.fault.strike(lambda: self.complete(act()))
        else:
            self.loop.loses_wakeups = True
            self._attempt(lambda: self.fault.strike(act))

    def turns(self, number: int = 10) -> None:
        async def pass_by() -> None:
            for _ in range(number):
                await asyncio.sleep(0)

        self.complete(pass_by())

    # What has to hold

    def check(self) -> None:
        self.bystander_completes()
        self.turns()
        self.bystander_completes()
        self.books_are_right()
        self.waiters_are_woken()
        if self.purgatory._engine.closing:
            with pytest.raises(PurgatoryClosed):
                self.purgatory.try_complete_else_watch(Op(self.fault, 1), ["new"])
        else:
            self.another_key_works()
            self.complete(asyncio.sleep(100))
            self.books_are_right()
            assert all(each.done or each.state is NEW or each.timeout is None for each in self.operations)
        self.closing_ends()
        self.reports_are_expected()

    def bystander_completes(self) -> None:
        bystander = self.other.try_complete_else_watch(Op(self.fault, 60, opened=False), ["stands by"])
        bystander.opened = True
        # It counts what the fault has left undone, too.
        assert self.other.check_and_complete("stands by") >= 1
        assert bystander.result() == "done"

    def another_key_works(self) -> None:
        operation = self.park("new")
        assert operation.state is PENDING
        operation.opened = True
        assert self.purgatory.check_and_complete(self.key("new")) == 1
        assert operation.result() == "done"

    def books_are_right(self) -> None:
        purgatory, figures = self.purgatory, self.purgatory.statistics()
        states = Counter(operation.state for operation in self.operations)
        pending = [operation for operation in self.operations if operation.state is PENDING]
        assert (figures.completed, figures.expired, figures.cancelled, figures.failed) == (
            states[COMPLETED],
            states[EXPIRED],
            states[CANCELLED],
            states[FAILED],
        )
        assert figures.pending == len(pending) == len(purgatory.operations())
        assert set(map(id, pending)) == set(map(id, purgatory.operations()))
        assert figures.watched == sum(len(operation.keys) for operation in pending)
        names = {str(key) for operation in pending for key in operation.keys}
        listed = [str(key) for key in purgatory.watched_keys(100)]
        assert figures.keys == len(listed)
        # Only a key that raised may leave its entry, until the purgatory is closed.
        may_stay = self.fault.at_a_key and not (purgatory._engine.closing and not pending)
        assert names <= set(listed)
        assert len(listed) <= len(names) + may_stay
        if self.witness in purgatory._engine.observers.all:
            assert self.key_witness.watched >= names, "a key that is watched was told"
        for name in names:
            watching = [each for each in pending if any(str(key) == name for key in each.keys)]
            assert set(map(id, purgatory.operations(self.key(name)))) == set(map(id, watching))
        check_watchers(purgatory._engine.watchers)
        check_wheel(purgatory.timer.wheel)
        assert len(purgatory.timer) == sum(operation.timeout is not None for operation in pending)
        for operation in self.operations:
            self.ran_as_its_state_says(operation)
        assert not [each for each in self.refused if each.state is PENDING]
        finished = self.witness.finished
        assert len(finished) == len(set(map(id, finished))), "an observer is told once"

    def ran_as_its_state_says(self, operation: Op) -> None:
        state = operation.state
        if state is NEW:
            assert operation.keys == ()
            assert operation._owner is None
        if state is not PENDING:
            assert not operation.scheduled
        if state is COMPLETED or state is EXPIRED:
            assert operation.completions == 1
            assert operation.expirations == (state is EXPIRED)
            if state is EXPIRED and operation.late is not None:
                assert operation.exception() is operation.late
            else:
                assert operation.result() == "done"
        elif state is FAILED:
            assert operation.completions <= 1
            error = operation.exception()
            assert isinstance(error, Bad) or self.fault.caused(error)
        else:
            assert operation.completions == 0

    def waiters_are_woken(self) -> None:
        for task, operation in self.waiting:
            if not lost(task):
                assert task.done() is operation.done
                if operation.state is CANCELLED:
                    error = None if task.cancelled() else task.exception()
                    assert (
                        task.cancelled() or isinstance(error, OperationWithdrawn) or self.fault.caused(error)
                    )
                elif operation.state is FAILED or (operation.state is EXPIRED and operation.late is not None):
                    assert task.exception() is operation.exception()
                elif operation.done:
                    assert task.result() == "done"

    def closing_ends(self) -> None:
        began, turns = self.loop.time(), self.loop.turns
        self.complete(self.purgatory.aclose())
        assert self.loop.time() - began <= 1
        assert self.loop.turns - turns <= 100
        self.turns()
        self.books_are_right()
        self.waiters_are_woken()
        assert all(operation.done or operation.state is NEW for operation in self.operations)
        self.complete(self.other.aclose())
        for task in asyncio.all_tasks(self.loop):
            assert lost(task)
            self.lost += 1
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.loop.close()

    def reports_are_expected(self) -> None:
        for report in self.loop.reports:
            error = report.get("exception")
            assert isinstance(error, Bad) or self.fault.caused(error), report
        # A failed operation that nobody awaits, a wake-up that is lost, and what failed in the engine itself.
        failed = sum(operation.state is FAILED for operation in self.operations)
        assert len(self.loop.reports) <= 2 + failed + self.lost, self.loop.reports
