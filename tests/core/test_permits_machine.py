"""Tasks that wait for permits are cancelled at any time. A simple model says who holds which permit.

The loop runs one turn at a time. All that the rules do between two turns happens in the same turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from purgatory import DelayedOperation, OperationState, OperationWithdrawn, Purgatory

NEW, PENDING, COMPLETED, EXPIRED, CANCELLED, FAILED = OperationState

T = TypeVar("T")

PERMITS = [0, 1]

# What a task has got: a permit, or None where the request took none, or one of these.
AT_WORK, WITHDRAWN, ENDED_BY_ERROR, TASK_CANCELLED = "at work", "withdrawn", "error", "cancelled"
Got = int | str | None

# The real side


class Request(DelayedOperation[int | None]):
    """Takes a permit as soon as one is free. When somebody forces it, there may be none."""

    def __init__(self, real: Real) -> None:
        super().__init__(None)
        self.real = real

    def try_complete(self) -> bool:
        return len(self.real.free) > 0 and self.force_complete()

    def on_complete(self) -> int | None:
        return self.real.free.popleft() if self.real.free and not self.expired else None

    def on_unclaimed(self) -> None:
        permit = self.result()
        if permit is not None:
            self.real.give_back(permit)


class Real:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # A request may fail while nobody awaits it.
        self.loop.set_exception_handler(lambda loop, context: None)
        self.purgatory = self.loop.run_until_complete(Purgatory().__aenter__())
        self.free = deque(PERMITS)
        self.requests: list[Request] = []
        self.tasks: list[tuple[int, asyncio.Task[int | None]]] = []

    def ask(self) -> None:
        self.requests.append(Request(self))
        self.purgatory.try_complete_else_watch(self.requests[-1], ["free"])

    def wait(self, number: int) -> None:
        async def wait() -> int | None:
            return await self.requests[number]

        self.tasks.append((number, self.loop.create_task(wait())))

    def run_one_turn(self) -> None:
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def cancel(self, task: int) -> bool:
        return self.tasks[task][1].cancel()

    def give_back(self, permit: int) -> None:
        self.free.append(permit)
        self.check()

    def check(self) -> None:
        self.purgatory.check_and_complete("free", limit=1)

    def force(self, number: int) -> bool:
        return self.requests[number].force_complete()

    def fail(self, number: int) -> bool:
        return self.requests[number].fail(ValueError("failed"))

    def withdraw(self, number: int) -> bool:
        return self.requests[number].cancel()

    def expire(self, number: int) -> bool:
        return self.requests[number].reschedule(0)

    def states(self) -> list[OperationState]:
        return [request.state for request in self.requests]

    def got(self) -> list[Got]:
        return [_got(task) for _, task in self.tasks]

    def holders(self) -> dict[int, int]:
        """The permits that requests have taken, and that tasks have got, by the number of the request."""
        taken = enumerate(map(_got, self.requests))
        shown = ((number, _got(task)) for number, task in self.tasks)
        return {number: got for number, got in (*taken, *shown) if isinstance(got, int)}


def _got(awaited: Request | asyncio.Task[int | None]) -> Got:
    if not (awaited.done if isinstance(awaited, Request) else awaited.done()):
        return AT_WORK
    try:
        return awaited.result()
    except OperationWithdrawn:
        return WITHDRAWN
    except ValueError:
        return ENDED_BY_ERROR
    except asyncio.CancelledError:
        return TASK_CANCELLED


# The model


class ModelRequest:
    def __init__(self) -> None:
        self.state = PENDING
        self.result: Got = AT_WORK
        # The tasks that await it, until one of them has the result.
        self.waiting: list[ModelTask] = []


class ModelTask:
    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.begun = False
        self.cancelled = False
        self.got: Got = AT_WORK


class Model:
    def __init__(self) -> None:
        self.free = list(PERMITS)
        self.requests: list[ModelRequest] = []
        self.tasks: list[ModelTask] = []
        # The tasks that run in the next turn, in this order.
        self.ready: list[ModelTask] = []

    def ask(self) -> None:
        self.requests.append(ModelRequest())
        if self.free:
            self.force(-1)

    def wait(self, number: int) -> None:
        self.tasks.append(ModelTask(self.requests[number]))
        self.ready.append(self.tasks[-1])

    def run_one_turn(self) -> None:
        ready, self.ready = self.ready, []
        for task in ready:
            self.step(task, task.request)

    def step(self, task: ModelTask, request: ModelRequest) -> None:
        if task.cancelled:
            task.got = TASK_CANCELLED
            if task in request.waiting:
                request.waiting.remove(task)
                if not request.waiting:
                    self.abandon(request)
        elif not task.begun and request.state is PENDING:
            request.waiting.append(task)
        else:
            request.waiting.clear()
            task.got = request.result
        task.begun = True

    def abandon(self, request: ModelRequest) -> None:
        if not self.end(request, CANCELLED, WITHDRAWN) and request.state is COMPLETED:
            permit, request.result = request.result, WITHDRAWN
            if isinstance(permit, int):
                self.give_back(permit)

    def cancel(self, number: int) -> bool:
        task = self.tasks[number]
        if task.got != AT_WORK:
            return False
        if task not in self.ready:
            self.ready.append(task)
        task.cancelled = True
        return True

    def end(self, request: ModelRequest, state: OperationState, result: Got) -> bool:
        if request.state is not PENDING:
            return False
        request.state, request.result = state, result
        self.ready += [task for task in request.waiting if not task.cancelled]
        return True

    def deserted(self, request: ModelRequest) -> bool:
        """Withdraw the request if all its tasks are cancelled. Whether they are."""
        if request.waiting and all(task.cancelled for task in request.waiting):
            return self.end(request, CANCELLED, WITHDRAWN)
        return False

    def give_back(self, permit: int) -> None:
        self.free.append(permit)
        self.check()

    def check(self) -> None:
        for number, request in enumerate(self.requests):
            if request.state is PENDING and not self.deserted(request) and self.free:
                self.force(number)
                return

    def force(self, number: int) -> bool:
        request = self.requests[number]
        if request.state is not PENDING or self.deserted(request):
            return False
        return self.end(request, COMPLETED, self.free.pop(0) if self.free else None)

    def fail(self, number: int) -> bool:
        request = self.requests[number]
        return not self.deserted(request) and self.end(request, FAILED, ENDED_BY_ERROR)

    def withdraw(self, number: int) -> bool:
        return self.end(self.requests[number], CANCELLED, WITHDRAWN)

    def expire(self, number: int) -> bool:
        return self.end(self.requests[number], EXPIRED, None)


# The comparison

# In the line, from its head.
PLACES = st.integers(0, 2)


def chosen(place: int, among: Sequence[T]) -> T:
    return among[place % len(among)]


class PermitsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.real = Real()
        self.model = Model()
        # The requests whose permit has come back from those who had it.
        self.over: set[int] = set()

    def both(self, act: str, *arguments: object) -> None:
        answers = [getattr(side, act)(*arguments) for side in (self.real, self.model)]
        assert answers[0] == answers[1]

    @initialize()
    def take_all(self) -> None:
        for _ in PERMITS:
            self.both("ask")

    @rule(tasks_of_each=st.lists(st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=4))
    def ask(self, tasks_of_each: list[int]) -> None:
        for tasks in tasks_of_each:
            self.both("ask")
            for _ in range(tasks):
                self.both("wait", len(self.real.requests) - 1)

    def open(self) -> list[int]:
        """The requests that are pending, and those whose tasks have not run since the end."""
        requests = enumerate(self.model.requests)
        return [number for number, request in requests if request.state is PENDING or request.waiting]

    @precondition(lambda self: bool(self.open()))
    @rule(place=PLACES)
    def wait(self, place: int) -> None:
        self.both("wait", chosen(place, self.open()))

    @rule()
    def run_one_turn(self) -> None:
        self.both("run_one_turn")

    def at_work(self) -> list[int]:
        """The tasks that are not cancelled and have no result yet, those whose request has ended first."""
        tasks = enumerate(self.model.tasks)
        numbers = [number for number, task in tasks if task.got == AT_WORK and not task.cancelled]
        return sorted(numbers, key=lambda number: self.model.tasks[number].request.state is PENDING)

    @precondition(lambda self: bool(self.at_work()))
    @rule(places=st.lists(PLACES, min_size=1, max_size=3))
    def cancel(self, places: list[int]) -> None:
        for place in places:
            if self.at_work():
                self.both("cancel", chosen(place, self.at_work()))

    def held(self) -> list[tuple[int, int]]:
        """The requests and their permits that may be given back: a task has it, or nobody awaits it."""
        return [
            (number, permit)
            for number, permit in self.real.holders().items()
            if number not in self.over and not self.model.requests[number].waiting
        ]

    @precondition(lambda self: bool(self.held()))
    @rule(place=PLACES)
    def give_back(self, place: int) -> None:
        number, permit = chosen(place, self.held())
        self.over.add(number)
        self.both("give_back", permit)

    @precondition(lambda self: bool(self.open()))
    @rule(act=st.sampled_from(["check"] * 4 + ["force", "fail", "withdraw", "expire"]), place=PLACES)
    def check_or_end(self, act: str, place: int) -> None:
        self.both(act, *([] if act == "check" else [chosen(place, self.open())]))

    @invariant()
    def each_permit_is_in_one_place(self) -> None:
        taken = [permit for number, permit in self.real.holders().items() if number not in self.over]
        assert sorted([*self.real.free, *taken]) == PERMITS

    @invariant()
    def nobody_waits_while_a_permit_is_free(self) -> None:
        assert not self.real.free or PENDING not in self.real.states()

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        assert list(self.real.free) == self.model.free
        assert self.real.states() == [request.state for request in self.model.requests]
        assert self.real.got() == [task.got for task in self.model.tasks]

    def teardown(self) -> None:
        for task in range(len(self.real.tasks)):
            self.both("cancel", task)
        self.run_one_turn()
        self.run_one_turn()
        self.each_permit_is_in_one_place()
        self.all_is_as_the_model_says()
        assert AT_WORK not in self.real.got()
        self.real.loop.run_until_complete(self.real.purgatory.aclose())
        self.real.loop.close()


TestPermitsMachine = pytest.mark.usefixtures("untraced")(
    pytest.mark.timeout(max(600, 4 * settings().max_examples))(PermitsMachine.TestCase)
)
TestPermitsMachine.settings = settings(max_examples=8 * settings().max_examples, stateful_step_count=40)
