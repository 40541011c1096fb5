"""The replay compared with a purgatory on virtual time that has the same waits."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from purgatory import COMPILED, DelayedOperation, Purgatory, TimerTask, TimingWheel
from purgatory.pipeline.replay.reaper import ReplayInterval, Setting, Wait
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.pipeline.replay.random_waits import random_waits


class Patient(DelayedOperation[None]):
    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        return None


class Moves:
    """Counts the moves between levels of all wheels."""

    def __init__(self) -> None:
        self.count = 0


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> Moves:
    moves = Moves()
    sink = TimingWheel.sink

    def counted(self: TimingWheel, limit: int) -> int:
        moved = sink(self, limit)
        moves.count += moved
        return moved

    monkeypatch.setattr(TimingWheel, "sink", counted)
    return moves


async def work_of_a_purgatory(waits: list[Wait], setting: Setting, moves: Moves) -> tuple[int, int, int, int]:
    """The wake-ups, moves, levels and expirations of a purgatory with these waits."""
    loop = asyncio.get_running_loop()
    before = moves.count
    async with Purgatory(tick=setting.tick_us / 1e6, wheel_size=setting.wheel_size) as purgatory:
        opened = loop.time()
        for entered, deadline, left in waits:
            operation = Patient((deadline - entered) / 1e6)
            loop.call_at(opened + entered / 1e6, purgatory.try_complete_else_watch, operation, ["key"])
            if left is not None:
                loop.call_at(opened + left / 1e6, operation.cancel)
        await asyncio.sleep((max(deadline for _, deadline, _ in waits) + setting.tick_us) / 1e6)
        statistics = purgatory.statistics()
        assert statistics.pending == 0
        return (
            statistics.wakeups,
            moves.count - before,
            purgatory.timer.wheel.levels,
            statistics.expired,
        )


async def test_on_one_level_the_replay_equals_the_timer(virtual_time: VirtualTimeLoop, moves: Moves) -> None:
    waits = [wait for wait in random_waits(0, most=400) if wait[1] - wait[0] < 2_000_000]
    setting = Setting(1_000, 2048)

    work = ReplayInterval(waits).replayed(setting)

    assert (work.wakeups, work.moves, work.levels, work.lateness.total()) == await work_of_a_purgatory(
        waits, setting, moves
    )


@pytest.mark.skipif(COMPILED, reason="a compiled wheel calls its own `sink`, not the one that counts")
@pytest.mark.usefixtures("untraced")
async def test_on_several_levels_the_replay_wakes_as_often_and_moves_slightly_more(
    virtual_time: VirtualTimeLoop, moves: Moves
) -> None:
    # Of 400 such examples, 4 differ in wake-ups, by one or two, and 120 in moves.
    settings = [Setting(1_000, 8), Setting(1_000, 32), Setting(10_000, 20), Setting(2_000, 3)]
    replayed, moved_by_timer = 0, 0
    for seed in range(24):
        waits = random_waits(seed, most=300)
        setting = settings[seed % 4]
        work = ReplayInterval(waits).replayed(setting)
        wakeups, moved, levels, expired = await work_of_a_purgatory(waits, setting, moves)
        assert (work.wakeups, work.levels, work.lateness.total()) == (wakeups, levels, expired), seed
        replayed += work.moves
        moved_by_timer += moved
    # The replay empties a slot when it starts. The timer does so when it wakes next; some have left by then.
    assert moved_by_timer <= replayed <= 1.04 * moved_by_timer


@given(
    tick=st.sampled_from([250, 1_000, 3_000, 10_000, 1_000_000]),
    entered=st.integers(0, 10**9),
    timeout=st.integers(1, 10**9),
)
@example(tick=1_000, entered=0, timeout=1_000)
@example(tick=1_000, entered=999, timeout=2)
def test_the_replay_rounds_a_deadline_up_to_the_tick_of_the_timer(
    tick: int, entered: int, timeout: int
) -> None:
    clock = ManualClock()
    timer = clock.purgatory(tick=tick / 1e6).timer
    clock.advance(entered / 1e6)
    task = TimerTask()
    assert timer.add(task, timeout / 1e6)

    deadline = entered + timeout
    (late,) = ReplayInterval([(entered, deadline, None)]).replayed(Setting(tick, 20)).lateness
    replayed = (deadline + late) // tick
    # In seconds a deadline is a float. At the start of a tick, it may be later by a rounding error.
    assert task._expiration in ({replayed} if deadline % tick else {replayed, replayed + 1})
