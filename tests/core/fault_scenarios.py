"""Scenarios of the fault tests. Each one sets the scene and returns the act that the fault strikes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from tests.core import fault_endings as endings
from tests.core.fault_scene import Act, Scene

Scenario = Callable[[Scene], Act]


# Parking


def parking_on_one_key(scene: Scene) -> Act:
    operation = scene.made()
    return lambda: scene.offer(operation, "a")


def parking_on_three_keys(scene: Scene) -> Act:
    operation = scene.made()
    return lambda: scene.offer(operation, "a", "b", "c")


def parking_on_a_key_that_becomes_shared(scene: Scene) -> Act:
    scene.park("a")
    operation = scene.made()
    return lambda: scene.offer(operation, "a")


def parking_on_a_shared_key(scene: Scene) -> Act:
    scene.park("a")
    scene.park("a", "b", "c")
    operation = scene.made()
    return lambda: scene.offer(operation, "a")


def parking_on_keys_of_each_kind(scene: Scene) -> Act:
    scene.park("a")
    scene.park("b")
    scene.park("b")
    operation = scene.made(1)
    return lambda: scene.offer(operation, "x", "a", "b", "x", "a", "y")


def parking_on_a_key_with_a_full_chunk(scene: Scene) -> Act:
    for _ in range(16):
        scene.park("a")
    operation = scene.made(90)
    return lambda: scene.offer(operation, "a", "b")


def parking_without_a_timeout(scene: Scene) -> Act:
    operation = scene.made(None)
    return lambda: scene.offer(operation, "a")


def an_offer_that_completes(scene: Scene) -> Act:
    operation = scene.made(opened=True)
    return lambda: scene.offer(operation, "a")


def an_offer_that_expires_at_once(scene: Scene) -> Act:
    operation = scene.made(0)
    return lambda: scene.offer(operation, "a")


def an_offer_that_is_refused(scene: Scene) -> Act:
    scene.park("a")
    operation = scene.made()
    engine = scene.purgatory._engine

    def offer() -> None:
        engine._most = 2
        try:
            scene.offer(operation, "a", "b")
        finally:
            engine._most = 100

    return offer


def parking_in_a_hook(scene: Scene) -> Act:
    first = scene.park("a")
    second = scene.made(10)
    first.completing = lambda: scene.offer(second, "a", "b")
    return first.force_complete


# Checking


def checking_a_key_with_one_operation(scene: Scene) -> Act:
    scene.park("a", waiters=1).opened = True
    return lambda: scene.purgatory.check_and_complete(scene.key("a"))


def checking_a_shared_key(scene: Scene) -> Act:
    for opened in (False, True, True):
        scene.park("a", "b", waiters=1).opened = opened
    return lambda: scene.purgatory.check_and_complete(scene.key("a"))


def checking_a_key_whose_operations_check_others(scene: Scene) -> Act:
    for here, there in itertools.pairwise("abcd"):
        operation = scene.park(here, waiters=1)
        operation.opened = True
        operation.completing = lambda there=there: scene.purgatory.check_and_complete(scene.key(there))
    scene.park("d").opened = True
    return lambda: scene.purgatory.check_and_complete(scene.key("a"))


def checking_from_a_thread(scene: Scene) -> Act:
    scene.park("a", waiters=1).opened = True
    scene.park("b", waiters=1).opened = True

    async def signal() -> None:
        scene.purgatory.check_and_complete_threadsafe(scene.key("a"))
        scene.purgatory.check_and_complete_threadsafe(scene.key("b"))
        await asyncio.sleep(0)

    return signal


# Rescheduling


def rescheduling_to_a_later_time(scene: Scene) -> Act:
    operation = scene.park("a", "b", waiters=1)
    return lambda: operation.reschedule(80)


def rescheduling_to_an_earlier_time(scene: Scene) -> Act:
    operation = scene.park("a", "b", waiters=1)
    return lambda: operation.reschedule(2)


def rescheduling_to_never(scene: Scene) -> Act:
    operation = scene.park("a", "b", waiters=1)
    return lambda: operation.reschedule(None)


def rescheduling_from_never(scene: Scene) -> Act:
    operation = scene.park("a", "b", timeout=None, waiters=1)
    return lambda: operation.reschedule(3)


def rescheduling_to_now(scene: Scene) -> Act:
    operation = scene.park("a", "b", waiters=1)
    return lambda: operation.reschedule(0)


ON_THE_LOOP = (
    checking_from_a_thread,
    endings.the_reaper_expires,
    endings.sweeping,
    endings.closing,
    endings.closing_by_withdrawal,
    endings.cancelling_the_reaper,
    endings.cancelling_the_task_that_awaits,
)
IN_ONE_CALL = (
    parking_on_one_key,
    parking_on_three_keys,
    parking_on_a_key_that_becomes_shared,
    parking_on_a_shared_key,
    parking_on_keys_of_each_kind,
    parking_on_a_key_with_a_full_chunk,
    parking_without_a_timeout,
    parking_in_a_hook,
    an_offer_that_completes,
    an_offer_that_expires_at_once,
    an_offer_that_is_refused,
    checking_a_key_with_one_operation,
    checking_a_shared_key,
    checking_a_key_whose_operations_check_others,
    endings.completing,
    endings.completing_with_a_waiter,
    endings.completing_with_waiters_on_three_keys,
    endings.completing_the_first_of_a_shared_key,
    endings.completing_the_last_of_a_shared_key,
    endings.completing_with_a_value,
    endings.a_chain_of_values_and_errors,
    endings.failing_from_outside,
    endings.failing,
    endings.failing_with_waiters,
    endings.expiring_with_waiters,
    endings.expiring_with_an_error,
    endings.withdrawing,
    endings.withdrawing_with_waiters_on_three_keys,
    endings.withdrawing_all_of_a_key,
    endings.a_chain_of_completions,
    endings.an_end_that_ends_others_in_other_ways,
    rescheduling_to_a_later_time,
    rescheduling_to_an_earlier_time,
    rescheduling_to_never,
    rescheduling_from_never,
    rescheduling_to_now,
    endings.running_what_is_due,
    endings.a_slice_of_a_sweep,
    endings.inspecting,
)
