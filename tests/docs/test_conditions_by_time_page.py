"""What docs/how-to/conditions-by-time.md says of cancelled tasks, and does not show."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from purgatory import DelayedOperation, OperationState, Purgatory
from purgatory.observer import Timing
from purgatory.testing import VirtualTimeLoop
from tests.docs.programs import DOCS, programs_of


def program(number: int) -> Any:
    """The names of a program of the page."""
    code = list(programs_of(DOCS / "how-to" / "conditions-by-time.md"))[number].code
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "conditions_by_time.py", "exec"), names)
    return type("Program", (), names)


limits, edits, batches = map(program, range(3))

pytestmark = pytest.mark.usefixtures("tasks")


def run(scenario: Callable[[Purgatory], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Purgatory() as purgatory:
            await scenario(purgatory)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


class Cancellation:
    """An observer that cancels a task when its operation has completed, before the task runs."""

    def __init__(self, operations: int) -> None:
        self.operations = operations
        self.task: asyncio.Task[Any] | None = None

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        self.operations -= operation.state is OperationState.COMPLETED
        if self.operations == 0 and self.task is not None:
            self.task.cancel()
            self.task = None

    def key_checked(self, purgatory: str, key: object, tried: int, completed: int, at: float) -> None:
        pass


def test_a_turn_that_came_to_a_cancelled_task_goes_to_the_next_in_line() -> None:
    async def scenario(purgatory: Purgatory) -> None:
        cancellation = Cancellation(2)
        purgatory.add_observer(cancellation)
        limiter = limits.Limiter(purgatory)
        ada, bob, eve = [asyncio.create_task(limits.call(name, limiter, 1)) for name in ("ada", "bob", "eve")]
        cancellation.task = bob
        assert [await ada, await eve] == ["ada after 0.0 s", "eve after 0.1 s"]
        assert bob.cancelled()

    run(scenario)


def test_on_a_busy_loop_a_newcomer_does_not_overtake() -> None:
    async def scenario(purgatory: Purgatory) -> None:
        limiter = limits.Limiter(purgatory)
        ada, bob = [asyncio.create_task(limits.call(name, limiter, 1)) for name in ("ada", "bob")]
        await ada
        # The interval is over, and the timer has not come yet.
        limiter.free_at = asyncio.get_running_loop().time()
        eve = asyncio.create_task(limits.call("eve", limiter, 1))
        assert [await bob, await eve] == ["bob after 0.1 s", "eve after 0.2 s"]

    run(scenario)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("plain", [False, True], ids=["purgatory", "plain"])
def test_no_turn_is_lost_or_doubled_and_nobody_overtakes(plain: bool, seed: int) -> None:
    chance = random.Random(seed)

    async def scenario(purgatory: Purgatory) -> None:
        limiter = limits.PlainLimiter() if plain else limits.Limiter(purgatory)
        loop = asyncio.get_running_loop()
        turns: list[tuple[int, float]] = []

        async def call(number: int, timeout: float) -> None:
            await limiter.acquire(timeout)
            turns.append((number, loop.time()))

        # Every second one has the time to wait for its turn, so that somebody waits at any time.
        calls = [
            asyncio.create_task(call(number, 1_000 if number % 2 else chance.randint(1, 100) / 10))
            for number in range(300)
        ]
        while len(turns) < 80:
            await asyncio.sleep(chance.choice([0.05, 0.1]))
            chance.choice(calls).cancel()
        for each in calls:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

        numbers, times = zip(*turns, strict=True)
        assert list(numbers) == sorted(numbers)
        gaps = [later - sooner for sooner, later in pairwise(times)]
        assert all(limits.INTERVAL - 1e-6 < gap < limits.INTERVAL + 0.005 for gap in gaps)

    run(scenario)


def test_a_batch_that_came_to_a_cancelled_consumer_stays() -> None:
    async def scenario(purgatory: Purgatory) -> None:
        cancellation = Cancellation(1)
        purgatory.add_observer(cancellation)
        records = batches.Records(purgatory)
        cancellation.task = asyncio.create_task(records.next_batch())
        await asyncio.sleep(0)
        for record in "abc":
            records.put(record)
        await asyncio.sleep(0)
        assert await records.next_batch() == ["a", "b", "c"]

    run(scenario)


def test_an_edit_after_the_end_of_others_begins_anew() -> None:
    async def scenario(purgatory: Purgatory) -> None:
        saved: list[str] = []
        debouncer = edits.Debouncer(purgatory, saved.append)
        for text in ("first", "second"):
            debouncer.edit(text)
            await asyncio.sleep(edits.QUIET - 0.01)
            assert text not in saved
            await asyncio.sleep(0.02)
            assert saved[-1] == text

    run(scenario)
