"""The reaper over recorded waits, one case after the other, and against a model without a wheel."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from itertools import pairwise

import pytest

from purgatory.pipeline.transforms.reaper import NEVER, Setting, ReplayInterval, Wait, Work
from tests.pipeline.replay.histories import history, on_edges
from tests.pipeline.replay.model import model

# Ticks of a microsecond and levels of 20, 400, 8000 of them.
TWENTY = Setting(tick_us=1, wheel_size=20)


def work_of(*waits: Wait, setting: Setting = TWENTY) -> Work:
    return ReplayInterval(waits).replayed(setting)


def test_what_is_not_ended_before_expires_at_the_end_of_the_tick_of_its_deadline() -> None:
    work = work_of((3, 21, None), (4, 30, None), (5, 39, None), setting=Setting(10, 20))

    assert work.lateness == {9: 1, 0: 1, 1: 1}
    # Two of them together.
    assert (work.wakeups, work.fullest_slot) == (2, 1 + 1)


def test_a_deadline_is_never_met_early_and_missed_by_less_than_a_tick() -> None:
    for seed in range(20):
        work = ReplayInterval(history(seed)).replayed(Setting(7_000, 8))
        assert all(0 <= late < 7_000 for late in work.lateness)


def test_an_operation_moves_once_for_each_level_that_it_sinks_through() -> None:
    # At 450 from level 2, whose slot starts at 400, to level 1, whose slot starts at 440, to level 0.
    assert work_of((0, 450, None)).moves == 2
    assert work_of((0, 450, None)).levels == 3


def test_the_alarm_is_set_to_the_expiration_of_what_is_added_first() -> None:
    # So where its slots start nobody wakes.
    assert work_of((0, 450, None)).wakeups == 1


def test_once_awake_the_alarm_is_set_to_the_next_slot() -> None:
    # 10, 400, 440, 450
    assert work_of((0, 10, None), (0, 450, None)).wakeups == 4


def test_an_earlier_expiration_brings_the_alarm_forward() -> None:
    # 10 and 15, not 18.
    assert work_of((0, 15, None), (1, 10, None), (2, 18, 14)).wakeups == 2


def test_an_alarm_whose_operations_have_left_rings_in_vain() -> None:
    # At 10 in vain, and then it is set to 18.
    assert work_of((0, 10, 5), (0, 18, None)).wakeups == 2
    assert work_of((0, 10, 5), (0, 18, None)).lateness == {0: 1}


def test_when_the_last_operation_leaves_the_alarm_is_off() -> None:
    assert work_of((0, 10, 5), (0, 18, 9)) == Work(fullest_slot=1)
    assert work_of((0, 10, 5), (6, 18, None)).wakeups == 1


def test_who_leaves_as_a_slot_starts_is_not_moved_any_more() -> None:
    assert work_of((0, 450, 400), (0, 1000, None)).moves == 0 + 2
    assert work_of((0, 450, 401), (0, 1000, None)).moves == 1 + 2


def test_who_leaves_at_the_deadline_has_not_expired() -> None:
    assert work_of((0, 10, 10)).lateness == {}
    assert work_of((0, 10, 10), setting=Setting(10, 20)).lateness == {}


def test_the_fullest_slot_counts_what_is_in_it_at_a_time() -> None:
    assert work_of((0, 10, 3), (3, 10, None), (4, 10, None)).fullest_slot == 2
    # On level 1 at first, and 25 is in the same slot there; on level 0 with what came later.
    assert work_of((0, 22, None), (0, 25, None), (10, 22, None), (11, 22, None)).fullest_slot == 3


def test_a_stretch_counts_what_falls_into_it() -> None:
    waits = [(0, 10, None), (2, 450, None), (5, 18, 12), (410, 500, 420)]

    stretch = ReplayInterval(waits, since=10, until=430)

    # The alarm at 10, which was set before, at 18 in vain (it was set at 10), at 400; moves at 400.
    assert stretch.replayed(TWENTY) == Work(3, 1, 1, 3, Counter({0: 1}))
    assert (stretch.begun, stretch.end) == (1, 430)


def test_what_is_led_in_is_in_the_slots_and_on_the_levels() -> None:
    waits = [(0, 450, 30), (1, 450, 30), (2, 25, 21)]

    assert ReplayInterval(waits, since=10, until=22).replayed(TWENTY) == Work(0, 1, 2, 3)


def test_a_stretch_ends_with_its_last_wait() -> None:
    assert ReplayInterval([(0, 10, None), (2, 450, 30)]).end == 30
    assert ReplayInterval([(0, 50, None), (2, 450, 30)]).end == 50
    assert ReplayInterval([]).end == 0


def test_nothing_waits_and_nothing_is_done() -> None:
    assert ReplayInterval([]).replayed(TWENTY) == Work()


@pytest.mark.parametrize("make", [history, on_edges])
def test_it_does_what_a_model_without_a_wheel_says(make: Callable[[int], list[Wait]]) -> None:
    chance = random.Random(1)
    for seed in range(60):
        waits = make(seed)
        unit = 1_000 if make is history else 1
        setting = Setting(unit * chance.choice([1, 2, 10]), chance.choice([2, 3, 8, 32, 256]))
        assert ReplayInterval(waits).replayed(setting) == model(waits, setting), (seed, setting)


@pytest.mark.parametrize("make", [history, on_edges])
def test_however_time_is_cut_the_stretches_add_up_to_the_whole(make: Callable[[int], list[Wait]]) -> None:
    chance = random.Random(2)
    for seed in range(30):
        waits = make(seed)
        unit = 1_000 if make is history else 1
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


def test_a_wait_that_is_over_by_then_may_be_led_in_as_well() -> None:
    waits = history(3)
    setting = Setting(1_000, 8)
    since = borders(waits, 1_000)[-3]

    needed = ReplayInterval(alive(waits, since, NEVER, 1_000), since).replayed(setting)
    # Those of the last tenth of a second before.
    more = ReplayInterval(alive(waits, since - 100_000, NEVER, 1_000), since).replayed(setting)

    assert astuple(more)[:3] == astuple(needed)[:3]
    assert more.lateness == needed.lateness


def borders(waits: Sequence[Wait], tick: int) -> list[int]:
    """Where time may be cut: when a wait expires, and when one begins and none is pending."""
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
