"""The promises of every design of a timer, against a plain list, in random histories and by example."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.designs.alternative import Tally
from benchmarks.designs.kafka_today import SystemTimer
from benchmarks.designs.timers import CallAt, LazyHeap, TickerWheel, Timer
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.designs.recorded import Recorded

MakeTimer: TypeAlias = Callable[[Tally], Timer]

DESIGNS: dict[str, MakeTimer] = {
    "call_at": CallAt,
    "lazy heap": LazyHeap,
    # So small that most entries have to wait for many rounds.
    "ticker wheel": lambda tally: TickerWheel(tally, wheel_size=7),
    "Kafka": SystemTimer,
}

# All but the first fire at whole milliseconds.
RESOLUTION = 0.001
# The sums of a few hundred floats.
ROUNDING = 1e-7


def early(make: MakeTimer) -> float:
    """Kafka's timer cuts the time to milliseconds when an entry is added."""
    return RESOLUTION if make is SystemTimer else 0.0


@pytest.fixture(params=DESIGNS.values(), ids=list(DESIGNS))
def make(request: pytest.FixtureRequest) -> MakeTimer:
    made: MakeTimer = request.param
    return made


@dataclass
class Expected:
    """The outcome that an entry must have."""

    entry: Recorded
    deadline: float
    cancelled: bool = False


# Tenths of milliseconds to let pass; an action; and, also in tenths, the delay of an entry to add or the
# time to hold the loop, or the number of the entry to cancel or renew. Small numbers, so that deadlines
# meet; and the edges of Kafka's levels.
Step: TypeAlias = tuple[int, str, int]
DELAYS = st.one_of(
    st.integers(1, 50), st.sampled_from([199, 200, 201, 3990, 4000, 4010]), st.integers(1, 9_000)
)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.integers(0, 30), st.just("add"), DELAYS),
    st.tuples(st.integers(0, 30), st.sampled_from(["cancel", "renew"]), st.integers(1, 40)),
    st.tuples(st.integers(0, 5_000), st.just("hold"), DELAYS),
)


@pytest.mark.parametrize("name", DESIGNS)
@settings(max_examples=30)
@given(steps=st.lists(STEPS, min_size=1, max_size=40))
def test_entries_expire_once_in_order_not_early_and_never_after_they_are_cancelled(
    name: str, steps: list[Step]
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(_compare_with_a_list(DESIGNS[name], steps))


async def _compare_with_a_list(make: MakeTimer, steps: list[Step]) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    log: list[Recorded] = []
    every: list[Expected] = []
    holds: list[tuple[float, float]] = []
    async with make(Tally()) as timer:
        for tenths, action, number in steps:
            await asyncio.sleep(tenths / 10_000)
            seconds = number / 10_000
            if action == "add":
                entry = Recorded(loop, log)
                timer.add(entry, seconds)
                every.append(Expected(entry, loop.time() + seconds))
            elif action == "hold":
                before = loop.time()
                loop.jump(seconds)
                holds.append((before, loop.time()))
            elif every:
                chosen = every[number % len(every)]
                timer.cancel(chosen.entry)
                if not chosen.entry.expired_at:
                    chosen.cancelled = action == "cancel"
                    if action == "renew":
                        timer.add(chosen.entry, seconds)
                        chosen.deadline = loop.time() + seconds
            assert len(timer) == sum(not (e.cancelled or e.entry.expired_at) for e in every)
        await asyncio.sleep(1.0)
        assert len(timer) == 0

    for expected in every:
        times = expected.entry.expired_at
        if expected.cancelled:
            assert times == []
        else:
            assert len(times) == 1
            assert times[0] >= expected.deadline - early(make) - ROUNDING
            latest = expected.deadline + RESOLUTION
            for begin, end in holds:
                # A hold may follow right behind another.
                if begin <= latest:
                    latest = max(latest, end)
            assert times[0] <= latest + ROUNDING
    deadlines = {expected.entry: expected.deadline for expected in every}
    order = [deadlines[entry] for entry in log]
    assert all(b >= a - RESOLUTION - early(make) - ROUNDING for a, b in pairwise(order))


async def test_an_entry_may_add_cancel_and_renew_others_when_it_expires(
    make: MakeTimer, virtual_time: VirtualTimeLoop
) -> None:
    async with make(Tally()) as timer:
        added, cancelled, renewed = (Recorded(virtual_time) for _ in range(3))

        def interfere() -> None:
            timer.add(added, 0.02)
            timer.cancel(cancelled)
            timer.cancel(renewed)
            timer.add(renewed, 0.05)

        timer.add(Recorded(virtual_time, action=interfere), 0.01)
        # Due at the same time, and found due together with it.
        timer.add(cancelled, 0.01)
        timer.add(renewed, 0.01)
        await asyncio.sleep(1.0)
        assert added.expired_at == [pytest.approx(0.03)]
        assert cancelled.expired_at == []
        assert renewed.expired_at == [pytest.approx(0.06)]


async def test_nothing_is_armed_after_close(make: MakeTimer, virtual_time: VirtualTimeLoop) -> None:
    entries = [Recorded(virtual_time) for _ in range(10)]
    async with make(Tally()) as timer:
        for number, entry in enumerate(entries):
            timer.add(entry, 0.1 + number)
        await asyncio.sleep(0.5)
        if make is CallAt:
            # It does not know its entries.
            for entry in entries:
                timer.cancel(entry)
    await asyncio.sleep(0)
    assert virtual_time.idle_for() is None
    assert [len(entry.expired_at) for entry in entries] == [1] + [0] * 9


async def test_after_a_stall_all_due_entries_expire_in_order(
    make: MakeTimer, virtual_time: VirtualTimeLoop
) -> None:
    log: list[Recorded] = []
    entries = [Recorded(virtual_time, log) for _ in range(100)]
    async with make(Tally()) as timer:
        # The latest first, and 10 of them in each bucket of Kafka's second level.
        for number, entry in reversed(list(enumerate(entries))):
            timer.add(entry, 0.1 + number * 0.002)
        virtual_time.jump(10.0)
        await asyncio.sleep(0.001)
        assert log == entries
        assert len(timer) == 0
