"""The replay beside a purgatory that does the same, on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from purgatory import DelayedOperation, Purgatory, TimingWheel
from purgatory.pipeline.transforms.reaper import Setting, ReplayInterval, Wait
from purgatory.testing import VirtualTimeLoop
from tests.pipeline.replay.histories import history


class Patient(DelayedOperation[None]):
    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        return None


class Moves:
    """Counts what all wheels move between their levels."""

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


async def lived(waits: list[Wait], setting: Setting, moves: Moves) -> tuple[int, int, int, int]:
    """The wake-ups, moves, levels and expiries of a purgatory in which these waits take place."""
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


async def test_on_a_wheel_of_one_level_all_is_the_same(virtual_time: VirtualTimeLoop, moves: Moves) -> None:
    waits = [wait for wait in history(0, most=400) if wait[1] - wait[0] < 2_000_000]
    setting = Setting(1_000, 2048)

    work = ReplayInterval(waits).replayed(setting)

    assert (work.wakeups, work.moves, work.levels, work.lateness.total()) == await lived(
        waits, setting, moves
    )


async def test_on_several_levels_it_wakes_as_often_and_moves_little_more(
    virtual_time: VirtualTimeLoop, moves: Moves
) -> None:
    # Of 400 such histories 4 have another number of wake-ups, by one or two, and 120 one of moves.
    settings = [Setting(1_000, 8), Setting(1_000, 32), Setting(10_000, 20), Setting(2_000, 3)]
    replayed, happened = 0, 0
    for seed in range(24):
        waits = history(seed, most=300)
        setting = settings[seed % 4]
        work = ReplayInterval(waits).replayed(setting)
        wakeups, moved, levels, expired = await lived(waits, setting, moves)
        assert (work.wakeups, work.levels, work.lateness.total()) == (wakeups, levels, expired), seed
        replayed += work.moves
        happened += moved
    # It empties each slot when it starts, and the timer when it is awake next, when some have left.
    assert happened <= replayed <= 1.04 * happened
