"""The simulated reaper: single cases, and random waits compared with a model without a wheel."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from itertools import pairwise

import pytest

from purgatory.pipeline.replay.reaper import NEVER, ReplayInterval, Setting, Wait, Work
from tests.pipeline.replay.model import model
from tests.pipeline.replay.random_waits import random_waits, waits_at_slot_edges

# Ticks of a microsecond and levels of 20, 400, 8000 of them.
TWENTY = Setting(tick_us=1, wheel_size=20)


def work_of(*waits: Wait, setting: Setting = TWENTY) -> Work:
    return ReplayInterval(waits).replayed(setting)


def test_a_wait_that_is_not_ended_expires_at_the_end_of_the_tick_of_its_deadline() -> None:
    work = work_of((3, 21, None), (4, 30, None), (5, 39, None), setting=Setting(10, 20))

    assert work.lateness == {9: 1, 0: 1, 1: 1}
    # Two of them expire together.
    assert (work.wakeups, work.fullest_slot) == (2, 1 + 1)


def test_a_wait_never_expires_early_and_is_late_by_less_than_a_tick() -> None:
    for seed in range(20):
        work = ReplayInterval(random_waits(seed)).replayed(Setting(7_000, 8))
        assert all(0 <= late < 7_000 for late in work.lateness)


def test_an_operation_moves_once_for_each_level_that_it_passes() -> None:
    # At 450 from level 2, whose slot starts at 400, to level 1, whose slot starts at 440, to level 0.
    assert work_of((0, 450, None)).moves == 2
    assert work_of((0, 450, None)).levels == 3


def test_the_alarm_is_set_to_the_expiration_of_the_first_operation() -> None:
    # The reaper does not wake when its slots start.
    assert work_of((0, 450, None)).wakeups == 1


def test_once_awake_the_alarm_is_set_to_the_next_slot() -> None:
    # 10, 400, 440, 450
    assert work_of((0, 10, None), (0, 450, None)).wakeups == 4


def test_an_earlier_expiration_brings_the_alarm_forward() -> None:
    # Wakes at 10 and 15, not at 18.
    assert work_of((0, 15, None), (1, 10, None), (2, 18, 14)).wakeups == 2


def test_an_alarm_rings_even_if_its_operations_have_left() -> None:
    # Wakes at 10 without an operation, and then at 18.
    assert work_of((0, 10, 5), (0, 18, None)).wakeups == 2
    assert work_of((0, 10, 5), (0, 18, None)).lateness == {0: 1}


def test_when_the_last_operation_leaves_the_alarm_is_off() -> None:
    assert work_of((0, 10, 5), (0, 18, 9)) == Work(fullest_slot=1)
    assert work_of((0, 10, 5), (6, 18, None)).wakeups == 1


def test_an_operation_that_leaves_when_a_slot_starts_is_not_moved() -> None:
    assert work_of((0, 450, 400), (0, 1000, None)).moves == 0 + 2
    assert work_of((0, 450, 401), (0, 1000, None)).moves == 1 + 2


def test_an_operation_that_leaves_at_its_deadline_does_not_expire() -> None:
    assert work_of((0, 10, 10)).lateness == {}
    assert work_of((0, 10, 10), setting=Setting(10, 20)).lateness == {}


def test_the_fullest_slot_counts_operations_that_are_in_it_at_the_same_time() -> None:
    assert work_of((0, 10, 3), (3, 10, None), (4, 10, None)).fullest_slot == 2
    # 22 and 25 are in the same slot of level 1 at first; then 22 is on level 0 with later operations.
    assert work_of((0, 22, None), (0, 25, None), (10, 22, None), (11, 22, None)).fullest_slot == 3


def test_an_interval_counts_the_work_within_it() -> None:
    waits = [(0, 10, None), (2, 450, None), (5, 18, 12), (410, 500, 420)]

    interval = ReplayInterval(waits, since=10, until=430)

    # The alarm rings at 10, set in the warm-up; at 18 without an operation; and at 400, which also moves.
    assert interval.replayed(TWENTY) == Work(3, 1, 1, 3, Counter({0: 1}))
    assert (interval.begun, interval.end) == (1, 430)


def test_warm_up_waits_count_for_the_slots_and_the_levels() -> None:
    waits = [(0, 450, 30), (1, 450, 30), (2, 25, 21)]

    assert ReplayInterval(waits, since=10, until=22).replayed(TWENTY) == Work(0, 1, 2, 3)


def test_an_interval_ends_with_its_last_wait() -> None:
    assert ReplayInterval([(0, 10, None), (2, 450, 30)]).end == 30
    assert ReplayInterval([(0, 50, None), (2, 450, 30)]).end == 50
    assert ReplayInterval([]).end == 0


def test_without_waits_there_is_no_work() -> None:
    assert ReplayInterval([]).replayed(TWENTY) == Work()


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("make", [random_waits, waits_at_slot_edges])
def test_the_work_equals_that_of_a_model_without_a_wheel(make: Callable[[int], list[Wait]]) -> None:
    chance = random.Random(1)
    for seed in range(60):
        waits = make(seed)
        unit = 1_000 if make is random_waits else 1
        setting = Setting(unit * chance.choice([1, 2, 10]), chance.choice([2, 3, 8, 32, 256]))
        assert ReplayInterval(waits).replayed(setting) == model(waits, setting), (seed, setting)


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("make", [random_waits, waits_at_slot_edges])
def test_the_work_of_intervals_adds_up_for_every_partition(make: Callable[[int], list[Wait]]) -> None:
    chance = random.Random(2)
    for seed in range(30):
        waits = make(seed)
        unit = 1_000 if make is random_waits else 1
        setting = Setting(unit * chance.choice([1, 2, 10]), chance.choice([2, 3, 8, 32, 256]))
        whole = ReplayInterval(waits).replayed(setting)
        cuts = borders(waits, setting.tick_us)
        for count in {0, 1, 4, len(cuts)}:
            edges = [0, *sorted(chance.sample(cuts, min(count, len(cuts)))), NEVER]
            parts = [
                ReplayInterval(alive(waits, since, until, setting.tick_us), since, until)
                for since, until in pairwise(edges)
            ]
            assert added(part.replayed(setting) for part in parts) == whole, (seed, setting, edges)
            assert sum(part.begun for part in parts) == len(waits)


def test_the_warm_up_may_include_waits_that_end_before_the_interval() -> None:
    waits = random_waits(3)
    setting = Setting(1_000, 8)
    since = borders(waits, 1_000)[-3]

    needed = ReplayInterval(alive(waits, since, NEVER, 1_000), since).replayed(setting)
    # With the waits of a tenth of a second before.
    more = ReplayInterval(alive(waits, since - 100_000, NEVER, 1_000), since).replayed(setting)

    assert astuple(more)[:3] == astuple(needed)[:3]
    assert more.lateness == needed.lateness


def borders(waits: Sequence[Wait], tick: int) -> list[int]:
    """Where intervals may begin: when a wait expires, or when one begins and none is pending."""
    expiries = {deadline for _, deadline, left in waits if left is None}
    quiet = {
        wait[0] for wait in waits if all(gone(each, tick) <= wait[0] for each in waits if each[0] < wait[0])
    }
    return sorted(expiries | quiet)


def alive(waits: Sequence[Wait], since: int, until: int, tick: int) -> list[Wait]:
    return [wait for wait in waits if wait[0] < until and gone(wait, tick) > since]


def gone(wait: Wait, tick: int) -> int:
    return wait[1] + tick if wait[2] is None else wait[2]


def added(parts: Iterable[Work]) -> Work:
    total = Work()
    for part in parts:
        total.wakeups += part.wakeups
        total.moves += part.moves
        total.fullest_slot = max(total.fullest_slot, part.fullest_slot)
        total.levels = max(total.levels, part.levels)
        total.lateness += part.lateness
    return total
