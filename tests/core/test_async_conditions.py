"""Conditions that are awaited: `AsyncDelayedOperation`, and async predicates of `wait_until`."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, NoReturn

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory import (
    AsyncDelayedOperation,
    DelayedOperation,
    OperationState,
    OperationWithdrawn,
    Purgatory,
    PurgatoryClosed,
    PurgatoryFull,
)
from purgatory._core.waiting import accompany
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, a_few_turns

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


class Store:
    """A store that answers when the test says so. An answer is what was there when the question came."""

    def __init__(self) -> None:
        self.value = 0
        self.asked = 0
        self.running = 0
        self.most = 0
        self.cancelled = 0
        # The questions that wait for their answer.
        self.questions: deque[asyncio.Future[None]] = deque()

    async def at_least(self, value: int) -> int | None:
        """The value, if it is at least `value`."""
        seen = self.value
        self.asked += 1
        self.running += 1
        self.most = max(self.most, self.running)
        question = asyncio.get_running_loop().create_future()
        self.questions.append(question)
        try:
            await question
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return seen if seen >= value else None

    def answer(self, error: BaseException | None = None) -> None:
        """Answer the oldest question."""
        question = self.questions.popleft()
        if not question.done():
            if error is None:
                question.set_result(None)
            else:
                question.set_exception(error)

    async def answer_all(self) -> None:
        """Answer every question, and those that the answers bring."""
        while self.questions:
            self.answer()
            await a_few_turns()


class AtLeast(AsyncDelayedOperation[int]):
    def __init__(self, store: Store, value: int, timeout: float | None = 60) -> None:
        super().__init__(timeout)
        self.store = store
        self.value = value
        self.completions = 0

    async def condition(self) -> int | None:
        return await self.store.at_least(self.value)

    def on_complete(self) -> int:
        self.completions += 1
        return -1


class Asking(AsyncDelayedOperation[Any]):
    """Evaluates a function of the test."""

    def __init__(self, ask: Callable[[], Awaitable[Any]], timeout: float | None = 60) -> None:
        super().__init__(timeout)
        self.ask = ask

    async def condition(self) -> Any:
        return await self.ask()


Begin = Callable[[Purgatory, Callable[[], Awaitable[Any]], float | None], Awaitable[Any]]


def as_operation(
    purgatory: Purgatory, ask: Callable[[], Awaitable[Any]], timeout: float | None
) -> Awaitable[Any]:
    return purgatory.try_complete_else_watch(Asking(ask, timeout), ["a"])


def as_predicate(
    purgatory: Purgatory, ask: Callable[[], Awaitable[Any]], timeout: float | None
) -> Awaitable[Any]:
    return purgatory.wait_until(ask, ["a"], timeout)


both = pytest.mark.parametrize("begin", [as_operation, as_predicate])


async def await_it(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


async def started(awaitable: Awaitable[Any]) -> asyncio.Task[Any]:
    """A task that awaits it, with an evaluation running."""
    task = asyncio.create_task(await_it(awaitable))
    await a_few_turns()
    return task


def other_tasks() -> set[str]:
    current = asyncio.current_task()
    return {task.get_name() for task in asyncio.all_tasks() if task is not current}


# The value


@both
async def test_the_first_true_value_is_the_result(purgatory: Purgatory, begin: Begin) -> None:
    store = Store()
    wait = await started(begin(purgatory, partial(store.at_least, 2), 60))
    for value in (1, 2):
        store.value = value
        assert purgatory.check_and_complete("a") == 0
        store.answer()
        await a_few_turns()
    assert not wait.done()
    store.answer()
    assert await wait == 2
    assert (store.asked, store.most) == (3, 1)
    assert purgatory.statistics().completed == 1
    assert nothing_is_left(purgatory)


@both
async def test_a_value_that_is_there_already_is_returned_without_a_check(
    purgatory: Purgatory, begin: Begin
) -> None:
    async def there() -> str:
        return "there"

    assert await begin(purgatory, there, 60) == "there"
    assert nothing_is_left(purgatory)


async def test_on_complete_runs_once_and_the_value_of_the_condition_replaces_its_own(
    purgatory: Purgatory,
) -> None:
    store = Store()
    store.value = 7
    operation = purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"])
    await a_few_turns()
    store.answer()
    assert await operation == 7
    assert operation.completions == 1
    assert operation.state is OperationState.COMPLETED


@pytest.mark.usefixtures("virtual_time")
async def test_after_an_expiration_the_result_is_that_of_on_complete(purgatory: Purgatory) -> None:
    operation = purgatory.try_complete_else_watch(AtLeast(Store(), 1, timeout=5), ["a"])
    assert await operation == -1
    assert operation.expired


async def test_a_predicate_may_return_any_awaitable_and_plain_values_in_between(
    purgatory: Purgatory,
) -> None:
    store = Store()
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    values = [None, store.at_least(5), 0, future]
    wait = await started(purgatory.wait_until(lambda: values.pop(0), ["a"]))
    for _ in range(3):
        purgatory.check_and_complete("a")
        await a_few_turns()
        await store.answer_all()
    assert values == []
    future.set_result(7)
    assert await wait == 7
    assert store.asked == 1


# When it is evaluated


@pytest.mark.parametrize("signals", [1, 1_000])
@both
async def test_signals_during_an_evaluation_bring_exactly_one_more(
    purgatory: Purgatory, begin: Begin, signals: int
) -> None:
    store = Store()
    wait = await started(begin(purgatory, partial(store.at_least, 1), 60))
    for _ in range(signals):
        purgatory.check_and_complete("a")
    await a_few_turns()
    assert store.asked == 1
    store.answer()
    await a_few_turns()
    assert store.asked == 2
    store.answer()
    await a_few_turns()
    assert (store.asked, store.most, store.running) == (2, 1, 0)
    assert not wait.done()
    wait.cancel()
    await asyncio.wait([wait])


async def test_the_value_may_be_out_of_date_when_the_waiter_wakes(purgatory: Purgatory) -> None:
    store = Store()
    store.value = 1
    operation = purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"])
    await a_few_turns()
    store.value = 0
    purgatory.check_and_complete("a")
    store.answer()
    assert await operation == 1
    assert store.value == 0


async def test_nothing_runs_between_the_end_of_an_evaluation_and_on_complete(purgatory: Purgatory) -> None:
    ran: list[str] = []

    class Noting(AsyncDelayedOperation[bool]):
        async def condition(self) -> bool:
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(ran.append, "somebody else")
            ran.append("evaluated")
            return True

        def on_complete(self) -> bool:
            ran.append("on_complete")
            return True

    await purgatory.try_complete_else_watch(Noting(60), ["a"])
    await a_few_turns()
    assert ran == ["evaluated", "on_complete", "somebody else"]


async def test_two_operations_may_see_the_same_job_and_one_atomic_step_decides_who_takes_it(
    purgatory: Purgatory,
) -> None:
    jobs = ["job"]
    taken: list[str] = []

    async def look() -> str | None:
        await asyncio.sleep(0)
        return jobs[0] if jobs else None

    async def work(name: str) -> None:
        woken = 0
        while not taken:
            await purgatory.wait_until(look, ["jobs"])
            woken += 1
            if jobs:
                taken.append(f"{name} took {jobs.pop()}")
        seen.append((name, woken))

    seen: list[tuple[str, int]] = []
    async with asyncio.TaskGroup() as group:
        for name in ("ada", "grace"):
            group.create_task(work(name))
    assert taken == ["ada took job"]
    assert seen == [("ada", 1), ("grace", 1)]


@both
async def test_an_evaluation_that_signals_its_own_key_is_evaluated_once_more(
    purgatory: Purgatory, begin: Begin
) -> None:
    asked: list[int] = []

    async def count() -> bool:
        asked.append(purgatory.check_and_complete("a"))
        return len(asked) == 3

    assert await begin(purgatory, count, 60) is True
    await a_few_turns()
    # The loop was never blocked: each evaluation begins in a turn of its own.
    assert asked == [0, 0, 0]


async def test_a_look_that_begins_in_the_call_of_the_predicate_is_followed_by_one_more(
    purgatory: Purgatory,
) -> None:
    loop = asyncio.get_running_loop()
    there: list[int] = []

    def look() -> asyncio.Future[int]:
        # As a thread does, it looks at once.
        future: asyncio.Future[int] = loop.create_future()
        loop.call_soon(future.set_result, len(there))
        return future

    def change() -> None:
        there.append(1)
        purgatory.check_and_complete("a")

    async def wait() -> int:
        return await purgatory.wait_until(look, ["a"])

    loop.call_soon(change)
    async with asyncio.timeout(5):
        assert await asyncio.create_task(wait()) == 1


@both
async def test_evaluations_begin_in_a_later_turn_also_where_tasks_are_eager(
    purgatory: Purgatory, begin: Begin
) -> None:
    asked: list[str] = []

    async def ask() -> bool:
        asked.append("evaluated")
        return True

    wait = begin(purgatory, ask, 60)
    if begin is as_operation:
        purgatory.check_and_complete("a")
        asked.append("offered")
    assert await wait is True
    assert asked == ["offered", "evaluated"] if begin is as_operation else asked == ["evaluated"]


@both
async def test_evaluations_run_in_the_context_of_who_offers_and_keep_nothing_of_each_other(
    purgatory: Purgatory, begin: Begin
) -> None:
    seen: list[str] = []

    async def ask() -> bool:
        seen.append(user.get())
        user.set("somebody else")
        return len(seen) == 3

    async def wait_as(name: str) -> None:
        user.set(name)
        await begin(purgatory, ask, 60)

    wait = asyncio.create_task(wait_as("ada"))
    user.set("grace")
    while not wait.done():
        await a_few_turns()
        purgatory.check_and_complete("a")
    assert seen == ["ada", "ada", "ada"]
    assert user.get() == "grace"


# The actions of a schedule: what happens to the store and to the loop, in any order.
ACTIONS = st.lists(st.sampled_from(["write", "signal", "answer", "turn"]), max_size=30)


@pytest.mark.parametrize("begin", [as_operation, as_predicate])
@given(actions=ACTIONS, needed=st.integers(1, 3))
def test_what_becomes_true_and_is_signalled_afterwards_is_seen_by_one_evaluation_at_a_time(
    begin: Begin, actions: list[str], needed: int
) -> None:
    async def main() -> None:
        store = Store()
        signals = 0
        async with Purgatory() as purgatory:
            wait = await started(begin(purgatory, partial(store.at_least, needed), None))
            signalled = 0
            for action in actions:
                if action == "write":
                    store.value += 1
                elif action == "signal":
                    signals += 1
                    signalled = store.value
                    purgatory.check_and_complete("a")
                elif action == "answer":
                    if store.questions:
                        store.answer()
                else:
                    await asyncio.sleep(0)
                assert store.running <= 1
            await a_few_turns()
            await store.answer_all()
            assert store.most == 1
            assert store.asked <= 1 + signals
            if signalled >= needed:
                assert wait.done()
            if wait.done():
                assert needed <= wait.result() <= store.value
            wait.cancel()
            await asyncio.wait([wait])
        assert other_tasks() == set()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


# How it ends


@pytest.mark.usefixtures("virtual_time")
@both
async def test_an_evaluation_that_never_ends_is_cancelled_by_the_timeout(
    purgatory: Purgatory, begin: Begin
) -> None:
    store = Store()
    loop = asyncio.get_running_loop()
    wait = begin(purgatory, partial(store.at_least, 1), 5)
    if begin is as_predicate:
        with pytest.raises(TimeoutError, match=r"and nobody checked 'a' within 5\.0 seconds"):
            await wait
    else:
        assert await wait is None
    assert loop.time() == pytest.approx(5, abs=0.002)
    assert (store.cancelled, store.running) == (1, 0)
    assert nothing_is_left(purgatory)


@both
@pytest.mark.parametrize("timeout", [0, -1])
async def test_without_time_nothing_is_evaluated(purgatory: Purgatory, begin: Begin, timeout: float) -> None:
    store = Store()
    wait = begin(purgatory, partial(store.at_least, 0), timeout)
    if begin is as_predicate:
        with pytest.raises(TimeoutError):
            await wait
    else:
        assert await wait is None
    await a_few_turns()
    assert store.asked == 0
    assert purgatory.statistics().expired == 1


@both
async def test_a_cancelled_wait_cancels_its_evaluation_and_returns_when_that_has_ended(
    purgatory: Purgatory, begin: Begin
) -> None:
    cleaned = asyncio.Event()
    events: list[str] = []

    async def ask() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            events.append("cleaning")
            await cleaned.wait()
            events.append("clean")

    wait = await started(begin(purgatory, ask, 60))
    wait.cancel()
    await a_few_turns()
    assert events == ["cleaning"]
    assert purgatory.statistics().cancelled == 1
    assert nothing_is_left(purgatory)
    # A second one changes nothing.
    wait.cancel()
    await a_few_turns()
    assert not wait.done()
    cleaned.set()
    await asyncio.wait([wait])
    assert wait.cancelled()
    assert events == ["cleaning", "clean"]


@both
async def test_a_cancellation_that_comes_while_a_wait_waits_for_its_evaluation_is_not_swallowed(
    purgatory: Purgatory, begin: Begin
) -> None:
    cleaned = asyncio.Event()

    async def ask() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await cleaned.wait()

    wait = await started(begin(purgatory, ask, 60))
    (operation,) = purgatory.operations()
    assert operation.complete("by somebody else")
    await a_few_turns()
    wait.cancel()
    await a_few_turns()
    assert not wait.done()
    cleaned.set()
    await asyncio.wait([wait])
    assert wait.cancelled()


@both
async def test_a_cancelled_anyio_scope_leaves_no_evaluation_behind(
    purgatory: Purgatory, begin: Begin
) -> None:
    store = Store()
    with anyio.CancelScope() as scope:
        asyncio.get_running_loop().call_soon(scope.cancel)
        await begin(purgatory, partial(store.at_least, 1), 60)
    assert scope.cancelled_caught
    assert store.running == 0
    assert nothing_is_left(purgatory)


async def test_an_operation_stays_and_is_evaluated_while_another_task_awaits_it(purgatory: Purgatory) -> None:
    store = Store()
    operation = purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"])
    first, second, third = [await started(operation) for _ in range(3)]
    for cancelled in (second, first):
        cancelled.cancel()
        # It does not wait for the evaluation, which goes on.
        await asyncio.wait([cancelled])
        assert operation.state is OperationState.PENDING
    store.value = 1
    purgatory.check_and_complete("a")
    await store.answer_all()
    assert await third == 1
    assert store.cancelled == 0


@pytest.mark.parametrize("evaluating", [True, False], ids=["evaluating", "idle"])
async def test_cancelling_the_last_of_several_waiting_tasks_withdraws_the_operation(
    purgatory: Purgatory, evaluating: bool
) -> None:
    store = Store()
    operation = purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"])
    waits = [await started(operation) for _ in range(3)]
    if not evaluating:
        await store.answer_all()
    for wait in waits:
        assert operation.state is OperationState.PENDING
        wait.cancel()
        await asyncio.wait([wait])
    assert operation.state is OperationState.CANCELLED
    assert store.cancelled == evaluating
    assert nothing_is_left(purgatory)


@pytest.mark.parametrize("turns", range(4))
@both
async def test_an_operation_that_ends_in_any_turn_leaves_no_evaluation_behind(
    purgatory: Purgatory, begin: Begin, turns: int
) -> None:
    store = Store()
    before = other_tasks()

    async def wait() -> Any:
        return await begin(purgatory, partial(store.at_least, 1), 60)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    assert len(purgatory.cancel_for_key("a")) == 1
    with pytest.raises(OperationWithdrawn):
        await waiting
    assert store.running == 0
    assert other_tasks() == before
    await a_few_turns()
    assert store.asked == store.cancelled


@both
@pytest.mark.parametrize("cancel_pending", [False, True])
async def test_closing_cancels_evaluations_and_returns_when_they_have_ended(
    begin: Begin, cancel_pending: bool
) -> None:
    events: list[str] = []

    async def ask() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await a_few_turns()
            events.append("clean")

    async with Purgatory() as purgatory:
        waits = [await started(begin(purgatory, ask, 60)) for _ in range(3)]
        left = purgatory.try_complete_else_watch(Asking(ask), ["a"])
        await a_few_turns()
        await purgatory.aclose(cancel_pending=cancel_pending)
        assert events == ["clean"] * 4
    assert left.state is (OperationState.CANCELLED if cancel_pending else OperationState.EXPIRED)
    results = await asyncio.gather(*waits, return_exceptions=True)
    expected: type[Any] = OperationWithdrawn if cancel_pending else TimeoutError
    assert all(result is None or isinstance(result, expected) for result in results)
    assert other_tasks() == set()


async def test_an_evaluation_may_close_the_purgatory() -> None:
    purgatory = Purgatory()
    purgatory.start()

    async def close() -> None:
        try:
            await purgatory.aclose()
        finally:
            closed.append(purgatory.statistics().pending)

    closed: list[int] = []
    other = purgatory.try_complete_else_watch(Gate(60), ["a"])
    operation = purgatory.try_complete_else_watch(Asking(close), ["a"])
    assert await operation is None
    assert closed == [0]
    assert other.expired
    await purgatory.aclose()
    assert other_tasks() == set()


async def test_an_evaluation_that_ends_its_own_operation_is_cancelled_at_its_next_await(
    purgatory: Purgatory,
) -> None:
    events: list[str] = []

    async def ask() -> bool:
        events.extend(type(operation).__name__ for operation in purgatory.cancel_for_key("a"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        events.append("goes on")
        return True

    operation = purgatory.try_complete_else_watch(Asking(ask), ["a"])
    with pytest.raises(OperationWithdrawn):
        await operation
    assert events == ["Asking"]
    assert nothing_is_left(purgatory)


async def test_an_operation_that_ends_while_its_task_is_made_cancels_the_evaluation(
    purgatory: Purgatory,
) -> None:
    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        operation.cancel()
        return asyncio.Task(coroutine, loop=loop, **options)

    store = Store()
    loop = asyncio.get_running_loop()
    made = loop.get_task_factory()
    operation = purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"])
    loop.set_task_factory(make)
    await a_few_turns()
    loop.set_task_factory(made)
    assert operation.state is OperationState.CANCELLED
    assert store.asked == store.running == 0
    assert nothing_is_left(purgatory)


@pytest.mark.usefixtures("virtual_time")
async def test_an_evaluation_that_awaits_its_own_operation_ends_with_it(purgatory: Purgatory) -> None:
    async def ask() -> Any:
        return await operation

    operation = purgatory.try_complete_else_watch(Asking(ask, 5), ["a"])
    assert await operation is None
    assert operation.expired


# Exceptions


@both
async def test_an_exception_of_the_condition_fails_the_operation(purgatory: Purgatory, begin: Begin) -> None:
    store = Store()
    wait = await started(begin(purgatory, partial(store.at_least, 1), 60))
    store.answer(KeyError("gone"))
    with pytest.raises(KeyError, match="gone"):
        await wait
    assert purgatory.statistics().failed == 1
    assert nothing_is_left(purgatory)


def reads(job: asyncio.Future[None]) -> Callable[[], Awaitable[Any]]:
    async def ask() -> None:
        await asyncio.sleep(0)
        job.result()

    return ask


def awaits(job: asyncio.Future[None]) -> Callable[[], Awaitable[Any]]:
    async def ask() -> None:
        await job

    return ask


def returns(job: asyncio.Future[None]) -> Callable[[], Awaitable[Any]]:
    return lambda: job


@both
@pytest.mark.parametrize("look", [reads, awaits, returns])
async def test_a_condition_that_looks_at_something_cancelled_fails_its_operation_alone(
    purgatory: Purgatory, begin: Begin, look: Callable[[asyncio.Future[None]], Callable[[], Awaitable[Any]]]
) -> None:
    job: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    store = Store()
    other = await started(begin(purgatory, partial(store.at_least, 0), 60))
    waiting = asyncio.create_task(await_it(begin(purgatory, look(job), 60)))
    await asyncio.sleep(0)
    job.cancel()
    message = r"^the condition of \w+ raised CancelledError: something that it reads was cancelled$"
    with pytest.raises(RuntimeError, match=message) as caught:
        await waiting
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    assert (purgatory.statistics().failed, purgatory.statistics().cancelled) == (1, 0)
    purgatory.check_and_complete("a")
    await store.answer_all()
    other.cancel()
    await asyncio.wait([other])
    assert nothing_is_left(purgatory)


async def test_a_condition_that_looks_at_something_cancelled_as_it_is_cancelled_ends_quietly(
    purgatory: Purgatory,
) -> None:
    job: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    job.cancel()

    async def ask() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await job

    operation = purgatory.try_complete_else_watch(Asking(ask), ["a"])
    await a_few_turns()
    operation.complete("done")
    assert await operation == "done"
    assert nothing_is_left(purgatory)


async def test_a_failure_that_nobody_awaits_is_reported(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    async def bad() -> NoReturn:
        raise KeyError("gone")

    operation = purgatory.try_complete_else_watch(Asking(bad), ["a"])
    await a_few_turns()
    await a_few_turns()
    assert operation.state is OperationState.FAILED
    assert [type(context["exception"]) for context in reported] == [KeyError]


async def test_a_value_without_a_truth_fails_the_operation(purgatory: Purgatory) -> None:
    class Undecided:
        def __bool__(self) -> NoReturn:
            raise ArithmeticError("neither true nor false")

    async def ask() -> Undecided:
        return Undecided()

    with pytest.raises(ArithmeticError, match="neither"):
        await purgatory.wait_until(ask, ["a"])


async def test_a_base_exception_fails_the_operation_and_is_not_swallowed(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    store = Store()
    operation = purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"])
    await a_few_turns()
    error = Stop("stop")
    store.answer(error)
    await a_few_turns()
    assert operation.state is OperationState.FAILED
    assert operation.exception() is error
    assert [context["exception"] for context in reported] == [error]
    assert nothing_is_left(purgatory)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_an_evaluation_stops_the_loop(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], error: type[BaseException]
) -> None:
    loop = loop_factory()
    purgatory = Purgatory()

    async def start() -> None:
        purgatory.start()

    async def bad() -> NoReturn:
        # When an eager task is interrupted while it is made, asyncio logs the interrupt as well.
        await asyncio.sleep(0)
        raise error

    loop.run_until_complete(start())
    operation = purgatory.try_complete_else_watch(Asking(bad), ["a"])
    with pytest.raises(error):
        loop.run_forever()
    assert operation.state is OperationState.FAILED
    loop.run_until_complete(purgatory.aclose())
    loop.close()


async def test_an_exception_that_comes_after_the_end_goes_to_the_exception_handler(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    async def ask() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError("in the clean-up")

    operation = purgatory.try_complete_else_watch(Asking(ask), ["a"])
    await a_few_turns()
    operation.cancel()
    await a_few_turns()
    assert [type(context["exception"]) for context in reported] == [KeyError]
    assert "condition of Asking" in reported[0]["message"]


@both
@pytest.mark.parametrize("turns", range(3))
async def test_when_somebody_else_cancels_the_evaluation_the_operation_is_withdrawn(
    purgatory: Purgatory, begin: Begin, turns: int
) -> None:
    store = Store()

    async def wait() -> Any:
        return await begin(purgatory, partial(store.at_least, 1), 60)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    if evaluations := [each for each in asyncio.all_tasks() if each.get_name().startswith("condition")]:
        evaluations[0].cancel()
    else:
        assert turns == 0
        waiting.cancel()
    with pytest.raises((OperationWithdrawn, asyncio.CancelledError)) as caught:
        await waiting
    if evaluations:
        assert "because the evaluation of its condition was cancelled" in str(caught.value)
    assert purgatory.statistics().cancelled == 1
    assert nothing_is_left(purgatory)


async def test_where_no_task_can_be_made_the_operation_fails(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise error

    loop = asyncio.get_running_loop()
    made = loop.get_task_factory()
    errors = [RuntimeError("no task today"), Stop("stop"), asyncio.CancelledError()]
    for error in errors:
        operation = purgatory.try_complete_else_watch(AtLeast(Store(), 1), ["a"])
        loop.set_task_factory(refuse)
        await a_few_turns()
        loop.set_task_factory(made)
        assert operation.state is OperationState.FAILED
        failure = operation.exception()
        assert failure is not None
        assert (failure.__cause__ if isinstance(error, asyncio.CancelledError) else failure) is error
    assert [context["exception"] for context in reported][:2] == errors[:2]


async def await_later(operation: DelayedOperation[Any]) -> Any:
    return await operation


# Refusals


async def test_a_refused_operation_is_not_evaluated_and_can_be_offered_again() -> None:
    store = Store()
    store.value = 1
    operation = AtLeast(store, 1)
    async with Purgatory(max_pending=1) as full, Purgatory() as other:
        gate = full.try_complete_else_watch(Gate(), ["a"])
        with pytest.raises(PurgatoryFull):
            full.try_complete_else_watch(operation, ["a"])
        with pytest.raises(PurgatoryFull):
            await full.wait_until(partial(store.at_least, 1), ["a"])
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        with pytest.raises(PurgatoryFull):
            await full.wait_until(lambda: future, ["a"])
        await a_few_turns()
        assert store.asked == 0
        assert future.cancelled()
        with pytest.raises(PurgatoryFull):
            full.try_complete_else_watch(operation, ["a"])
        other.try_complete_else_watch(operation, ["a"])
        await a_few_turns()
        assert store.asked == 1
        store.answer()
        assert await operation == 1
        gate.cancel()
    with pytest.raises(PurgatoryClosed):
        await full.wait_until(partial(store.at_least, 1), ["a"])


async def test_an_operation_that_was_refused_before_is_withdrawn_with_its_last_waiting_task(
    purgatory: Purgatory,
) -> None:
    operation = AtLeast(Store(), 1)
    async with Purgatory(max_pending=1) as full:
        full.try_complete_else_watch(Gate(), ["a"])
        with pytest.raises(PurgatoryFull):
            full.try_complete_else_watch(operation, ["a"])
    wait = await started(purgatory.try_complete_else_watch(operation, ["a"]))
    wait.cancel()
    await asyncio.wait([wait])
    assert operation.state is OperationState.CANCELLED
    assert nothing_is_left(purgatory)


def test_on_a_manual_clock_an_async_condition_fails_with_an_error_that_names_the_way(
    clock: ManualClock, held: Purgatory
) -> None:
    operation = held.try_complete_else_watch(AtLeast(Store(), 1), ["a"])
    with pytest.raises(RuntimeError, match="needs an event loop: test it on a VirtualTimeLoop"):
        operation.result()
    predicate: Coroutine[Any, Any, Any] = held.wait_until(partial(Store().at_least, 1), ["a"])
    with pytest.raises(RuntimeError, match="needs an event loop"):
        predicate.send(None)
    clock.advance(1)
    assert nothing_is_left(held)


def test_a_purgatory_is_signalled_while_its_loop_does_not_run() -> None:
    store = Store()
    purgatory = Purgatory()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:

        async def offer() -> AtLeast:
            purgatory.start()
            operation = purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"])
            await a_few_turns()
            await store.answer_all()
            return operation

        operation = runner.run(offer())
        store.value = 1
        purgatory.check_and_complete("a")

        async def finish() -> int:
            await a_few_turns()
            await store.answer_all()
            result = await operation
            await purgatory.aclose()
            return result

        assert runner.run(finish()) == 1


def test_a_loop_that_ends_around_a_waiting_operation_leaves_nothing_unawaited() -> None:
    store = Store()
    purgatory = Purgatory()

    async def offer() -> list[AtLeast]:
        purgatory.start()
        return [purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"]) for _ in range(2)]

    async def offer_and_wait() -> list[AtLeast]:
        operations = await offer()
        await a_few_turns()
        return operations

    for main in (offer, offer_and_wait):
        purgatory = Purgatory()
        operations = asyncio.run(main())
        assert {operation.state for operation in operations} == {OperationState.CANCELLED}
    gc.collect()


async def test_a_coroutine_that_is_closed_while_it_waits_waits_for_nothing(purgatory: Purgatory) -> None:
    store = Store()
    operation = purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"])
    waits = [purgatory.wait_until(partial(store.at_least, 1), ["a"]), await_later(operation)]
    for wait in waits:
        wait.send(None)
    await a_few_turns()
    assert store.asked == 2
    for wait in waits:
        wait.close()
    await a_few_turns()
    assert store.cancelled == 2
    assert nothing_is_left(purgatory)


def test_a_class_without_a_condition_is_refused() -> None:
    class Abstract(AsyncDelayedOperation[None]): ...

    with pytest.raises(TypeError, match=r"Abstract must override condition\(\)"):
        Abstract(60)


@pytest.mark.parametrize("name", ["try_complete", "_evaluator"])
def test_a_subclass_that_overrides_a_name_of_the_library_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=rf"Mine\.{name} overrides a name that belongs to the library"):
        type("Mine", (AtLeast,), {name: lambda self: False})


# What is left of it


@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize("end", ["complete", "expire", "withdraw"])
async def test_a_done_operation_is_freed_without_the_collector(purgatory: Purgatory, end: str) -> None:
    store = Store()
    operation = purgatory.try_complete_else_watch(AtLeast(store, 1), ["a"])
    await a_few_turns()
    if end == "complete":
        store.value = 1
        purgatory.check_and_complete("a")
        await store.answer_all()
    elif end == "expire":
        operation.reschedule(0)
    else:
        operation.cancel()
    await a_few_turns()
    assert operation.done
    reference = weakref.ref(operation)
    del operation
    assert reference() is None


@pytest.mark.usefixtures("collector_off")
async def test_an_async_wait_until_does_not_keep_the_value(purgatory: Purgatory) -> None:
    class Value:
        pass

    async def make() -> Value:
        return Value()

    value = await purgatory.wait_until(make, ["a"])
    await a_few_turns()
    reference = weakref.ref(value)
    del value
    assert reference() is None


async def test_a_companion_is_woken_with_all_that_await_the_operation(purgatory: Purgatory) -> None:
    async def wait() -> str:
        return await operation

    operation = purgatory.try_complete_else_watch(Gate(), ["a"])
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(wait()) for _ in range(2)]
        await a_few_turns()
        companion = asyncio.get_running_loop().create_future()
        accompany(operation, companion)
        operation.force_complete()
        assert companion.done()
    assert [task.result() for task in waiting] == ["gate", "gate"]
