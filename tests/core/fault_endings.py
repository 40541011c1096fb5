"""Scenarios of the fault tests: operations that end, one by one or many."""

from __future__ import annotations

import asyncio
import functools

from purgatory.bulk import Sweep
from tests.core.fault_scene import Act, Bad, Scene


def raise_bad() -> None:
    raise Bad


# Ending


def completing(scene: Scene) -> Act:
    return scene.park("a").force_complete


def completing_with_a_waiter(scene: Scene) -> Act:
    return scene.park("a", waiters=1).force_complete


def completing_with_waiters_on_three_keys(scene: Scene) -> Act:
    scene.park("a")
    operation = scene.park("a", "b", "c", waiters=3)
    scene.park("c", "b")
    return operation.force_complete


def completing_the_first_of_a_shared_key(scene: Scene) -> Act:
    operation = scene.park("a", waiters=1)
    scene.park("a")
    return operation.force_complete


def completing_the_last_of_a_shared_key(scene: Scene) -> Act:
    first, second = scene.park("a", "b"), scene.park("b", "a", waiters=1)
    first.cancel()
    return second.force_complete


def completing_with_a_value(scene: Scene) -> Act:
    return scene.park("a", "b", waiters=2).give


def a_chain_of_values_and_errors(scene: Scene) -> Act:
    first, second, third = (scene.park("a", name, waiters=1) for name in "bcd")
    first.completing = second.give
    second.completing = lambda: third.fail(Bad())
    return first.give


def failing_from_outside(scene: Scene) -> Act:
    operation = scene.park("a", "b", waiters=2)
    return lambda: operation.fail(Bad())


def failing(scene: Scene) -> Act:
    operation = scene.park("a", "b")
    operation.completing = raise_bad
    return operation.force_complete


def failing_with_waiters(scene: Scene) -> Act:
    operation = scene.park("a", waiters=2)
    operation.completing = raise_bad
    return operation.force_complete


def expiring_with_waiters(scene: Scene) -> Act:
    return scene.park("a", "b", waiters=2).run


def expiring_with_an_error(scene: Scene) -> Act:
    operation = scene.park("a", "b", waiters=2)
    operation.late = TimeoutError()
    return operation.run


def withdrawing(scene: Scene) -> Act:
    return scene.park("a").cancel


def withdrawing_with_waiters_on_three_keys(scene: Scene) -> Act:
    scene.park("b")
    return scene.park("a", "b", "c", waiters=2).cancel


def withdrawing_all_of_a_key(scene: Scene) -> Act:
    for _ in range(3):
        scene.park("a", "b", waiters=1)
    return lambda: scene.purgatory.cancel_for_key(scene.key("a"))


def a_chain_of_completions(scene: Scene) -> Act:
    first, second, third = (scene.park("a", name, waiters=1) for name in "bcd")
    first.completing = second.force_complete
    second.completing = third.force_complete
    return first.force_complete


def an_end_that_ends_others_in_other_ways(scene: Scene) -> Act:
    first, second, third, fourth = (scene.park("a", name, waiters=1) for name in "bcde")

    def end_others() -> None:
        second.cancel()
        third.reschedule(0)
        fourth.reschedule(5)

    first.completing = end_others
    return first.force_complete


# Expiring and sweeping, step by step, without the loop


def several_are_due(scene: Scene) -> None:
    for number in range(4):
        scene.park("a", str(number), timeout=1 + number / 1000, waiters=number % 2)
    scene.park("a", timeout=5)


def running_what_is_due(scene: Scene) -> Act:
    several_are_due(scene)

    def run_due() -> None:
        # In the act, because the loop turns before it, and the reaper would run what is due.
        scene.loop.pass_time(2)
        scene.purgatory.timer.run_due()

    return run_due


def a_slice_of_a_sweep(scene: Scene) -> Act:
    for number in range(20):
        scene.park("a", waiters=number % 2).opened = number % 3 > 0
    sweep = Sweep(scene.purgatory._checker, scene.key("a"))
    return functools.partial(sweep.step, 1.0)


# Inspecting


def inspecting(scene: Scene) -> Act:
    several_are_due(scene)
    purgatory = scene.purgatory
    operation = scene.operations[-1]

    def inspect() -> None:
        repr(purgatory)
        repr(purgatory.timer)
        repr(operation)
        purgatory.statistics()
        purgatory.operations()
        purgatory.operations(scene.key("a"))
        purgatory.watched_keys(2)
        purgatory.watching(scene.key("a"), 1)
        purgatory.timer.wheel.loads(9)
        repr((operation.deadline, operation.keys, purgatory.timer.next_wakeup))

    return inspect


# Ending, on the loop


def the_reaper_expires(scene: Scene) -> Act:
    several_are_due(scene)
    return functools.partial(asyncio.sleep, 2)


def sweeping(scene: Scene) -> Act:
    for number in range(20):
        operation = scene.park("a", waiters=number % 2)
        operation.opened = number % 3 > 0
        operation.trying = lambda: scene.loop.pass_time(0.002)
    return functools.partial(scene.purgatory.sweep, scene.key("a"))


def closing(scene: Scene) -> Act:
    several_are_due(scene)
    for operation in scene.operations:
        operation.completing = lambda: scene.loop.pass_time(0.002)
    return scene.purgatory.aclose


def closing_by_withdrawal(scene: Scene) -> Act:
    several_are_due(scene)
    return functools.partial(scene.purgatory.aclose, cancel_pending=True)


def cancelling_the_reaper(scene: Scene) -> Act:
    several_are_due(scene)
    [reaper] = [task for task in asyncio.all_tasks(scene.loop) if task.get_name() == "struck reaper"]

    async def cancel() -> None:
        reaper.cancel()
        await asyncio.wait([reaper])
        await asyncio.sleep(0)

    return cancel


def cancelling_the_task_that_awaits(scene: Scene) -> Act:
    scene.park("a", "b", waiters=1)
    task, _ = scene.waiting[-1]

    async def cancel() -> None:
        task.cancel()
        await asyncio.sleep(0)

    return cancel
