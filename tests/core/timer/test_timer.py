"""The timer: delays in seconds, a single armed timer of the loop, and a reaper that works in slices."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVarTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory import COMPILED, Timer, TimerTask
from purgatory._core.timer.wheel import Bucket
from purgatory.reaper import reap
from purgatory.testing import VirtualTimeLoop

Ts = TypeVarTuple("Ts")


class Task(TimerTask):
    """A task that records the times at which it runs, and then calls `action`."""

    __slots__ = ("action", "loop", "name", "ran_at")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str = "task",
        action: Callable[[], object] | None = None,
    ) -> None:
        super().__init__()
        self.loop = loop
        self.name = name
        self.action = action
        self.ran_at: list[float] = []

    def run(self) -> None:
        self.ran_at.append(self.loop.time())
        if self.action is not None:
            self.action()

    def __repr__(self) -> str:
        return self.name


if TYPE_CHECKING:
    # The tests need no more than the abstract class, but a type checker wants a concrete one.
    Loop = asyncio.SelectorEventLoop
else:
    Loop = asyncio.AbstractEventLoop


class Clock(Loop):
    """The part of an event loop that a timer uses. Its time stands still until the test moves it."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self.handles: list[asyncio.TimerHandle] = []
        self.reported: list[dict[str, Any]] = []

    def time(self) -> float:
        return self.now

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self.handles.append(handle)
        return handle

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.reported.append(context)

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """TimerHandle calls this method of its loop."""

    @property
    def armed(self) -> list[float]:
        """The times of the handles that have neither run nor been cancelled."""
        return [handle.when() for handle in self.handles if not handle.cancelled()]

    def spend(self, seconds: float) -> None:
        """Let time pass as slow code does, without running any timer."""
        self.now += seconds

    def advance_to(self, now: float, timer: Timer) -> None:
        """Let time pass until `now`, and wake `timer` at each time that it has armed."""
        while self.armed and min(self.armed) <= now:
            handle = min((h for h in self.handles if not h.cancelled()), key=lambda h: h.when())
            self.handles.remove(handle)
            self.now = max(self.now, handle.when())
            handle._run()
            timer.drive()
        self.now = max(self.now, now)


def started(clock: Clock, **options: Any) -> Timer:
    timer = Timer(**options)
    timer.start(clock)
    return timer


def scheduled(timer: Timer, clock: Clock, *delays: float) -> list[Task]:
    """Add new tasks to `timer`, one for each delay, and return them."""
    tasks = [Task(clock, name=f"after {delay}") for delay in delays]
    for task, delay in zip(tasks, delays, strict=True):
        assert timer.add(task, delay)
    return tasks


@asynccontextmanager
async def running(timer: Timer) -> AsyncIterator[asyncio.Task[None]]:
    """Run the timer's reaper in a task, and stop it at the end."""
    reaper = asyncio.create_task(reap(timer))
    await asyncio.sleep(0)
    try:
        yield reaper
    finally:
        timer.stop()
        done, _ = await asyncio.wait([reaper], timeout=10)
        assert done, "stop() has not ended the reaper"


# Never early, barely late

TICKS = [0.1, 0.001, 1 / 3, 0.0007, 0.25, 7.0]
PAUSES = st.one_of(st.just(0.0), st.floats(0, 3), st.sampled_from([0.1, 0.001, 1 / 3]))
DELAYS = st.one_of(
    st.floats(1e-6, 30),
    st.sampled_from([0.1, 0.2, 0.3, 0.6, 0.7, 1 / 3, 2 / 3, 0.001, 0.003, 0.0021, 1.1]),
)


@given(
    tick=st.sampled_from(TICKS),
    wheel_size=st.sampled_from([2, 3, 20, 64]),
    plan=st.lists(st.tuples(PAUSES, DELAYS), min_size=1, max_size=15),
)
def test_a_task_runs_never_before_its_deadline_and_less_than_a_tick_after_it(
    tick: float, wheel_size: int, plan: list[tuple[float, float]]
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timer = Timer(tick=tick, wheel_size=wheel_size)
        timer.start(loop)
        ran: list[Task] = []
        expected: list[tuple[Task, float]] = []
        slots = 0
        async with running(timer):
            for pause, delay in plan:
                await asyncio.sleep(pause)
                task = Task(loop)
                task.action = partial(ran.append, task)
                deadline = loop.time() + delay
                # A loop runs timers up to 1e-9 s early. Such a wake-up is too early, and there is another.
                next_tick = math.ceil(loop.time() / tick) * tick
                slots += 0 < next_tick - loop.time() < 1e-9
                assert timer.add(task, delay)
                assert task.deadline == deadline
                expected.append((task, deadline))
                slots += timer.wheel.locate(task)[0] + 1
            await asyncio.sleep(30 + 2 * tick)
        for task, deadline in expected:
            (ran_at,) = task.ran_at
            assert deadline <= ran_at < deadline + tick + 1e-9
        # Of the tasks that ran at the same time, the one added first comes first.
        order = {task: number for number, (task, _) in enumerate(expected)}
        assert ran == sorted(ran, key=lambda task: (task.ran_at, order[task]))
        # A task on a higher level later occupies a slot on each lower level.
        assert timer.wakeups <= slots

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


@given(
    tick=st.sampled_from(TICKS),
    start=st.sampled_from([0.0, 0.1, 1e6 + 1 / 3]),
    now=st.floats(0, 50),
    delay=st.one_of(st.floats(1e-6, 1e5), st.sampled_from([0.3, 0.7, 2 / 3])),
)
def test_deadlines_round_up_to_a_tick_wherever_the_clock_starts(
    tick: float, start: float, now: float, delay: float
) -> None:
    clock = Clock(start)
    timer = started(clock, tick=tick)
    clock.now += now
    deadline = clock.now + delay
    (task,) = scheduled(timer, clock, delay)
    clock.advance_to(deadline + tick + 1, timer)
    (ran_at,) = task.ran_at
    # At a million seconds, a float no longer resolves a tenth of a nanosecond.
    assert deadline <= ran_at < deadline + tick + 1e-9


@pytest.mark.parametrize("spent", [0.002, 0.05, 1.0])
def test_a_task_added_by_a_slow_task_does_not_run_early(spent: float) -> None:
    # The wheel's time may catch up when the other tasks are added, but must not go back after that.
    clock = Clock()
    timer = started(clock, wheel_size=64)
    others = [Task(clock) for _ in range(40)]
    deadlines = []

    def take_long_and_add() -> None:
        clock.spend(spent)
        for number, other in enumerate(others):
            delay = 0.040 + number * 0.001
            deadlines.append(clock.now + delay)
            timer.add(other, delay)

    timer.add(Task(clock, action=take_long_and_add), 0.010)
    clock.advance_to(3.0, timer)
    late = [other.ran_at[0] - deadline for other, deadline in zip(others, deadlines, strict=True)]
    assert min(late) >= 0
    assert max(late) < 0.001 + 1e-9


def test_a_task_due_soon_goes_to_the_lowest_level_even_if_nothing_has_expired_for_long() -> None:
    clock = Clock()
    timer = started(clock)
    scheduled(timer, clock, 3600.0)
    clock.now = 1800.0
    (task,) = scheduled(timer, clock, 0.005)
    assert timer.wheel.locate(task)[0] == 0
    assert timer.wheel.now == 1_800_000


# Nothing pending, nothing running


@pytest.mark.parametrize("delay", [math.inf, 1e300, 0.0, -1.0])
def test_a_timer_disarms_when_its_last_task_is_rescheduled_to_now_or_never(delay: float) -> None:
    clock = Clock()
    timer = started(clock)
    (task,) = scheduled(timer, clock, 1.0)
    timer.reschedule(task, delay)
    assert len(timer) == 0
    assert not timer.armed
    assert clock.armed == []


def test_a_busy_timer_arms_a_single_handle_for_the_next_occupied_slot() -> None:
    clock = Clock()
    timer = started(clock)
    for number in range(200):
        delay = (number * 37 % 101 + 1) / 10
        scheduled(timer, clock, delay)
        assert len(clock.armed) == 1
    assert clock.armed[0] <= 0.1
    for number in range(1, 120):
        clock.advance_to(number / 10, timer)
        assert len(clock.armed) == min(1, len(timer))


def test_a_later_deadline_leaves_the_armed_handle_alone_and_an_earlier_one_replaces_it() -> None:
    clock = Clock()
    timer = started(clock)
    scheduled(timer, clock, 0.020)
    (first,) = clock.handles
    scheduled(timer, clock, 0.030, 0.020)
    assert clock.handles == [first]
    scheduled(timer, clock, 0.010)
    assert len(clock.handles) == 2
    assert first.cancelled()
    assert clock.armed == [0.010]


@given(
    delays=st.lists(st.floats(0.0001, 0.9), min_size=1, max_size=8),
    tick=st.sampled_from([0.001, 0.0009, 1 / 900]),
)
def test_on_a_loop_with_virtual_time_no_slot_wakes_the_timer_twice(delays: list[float], tick: float) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timer = Timer(tick=tick, wheel_size=2000)
        timer.start(loop)
        tasks = [Task(loop) for _ in delays]
        async with running(timer):
            for task, delay in zip(tasks, delays, strict=True):
                assert timer.add(task, delay)
            await asyncio.sleep(1)
        assert timer.wakeups == len({task.ran_at[0] for task in tasks})

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


# Rescheduling and removing


@pytest.mark.parametrize(("delay", "ran_at"), [(3.0, 3.5), (0.1, 0.6)])
def test_a_rescheduled_task_runs_once_at_its_new_time(delay: float, ran_at: float) -> None:
    clock = Clock()
    timer = started(clock)
    (task,) = scheduled(timer, clock, 1.0)
    clock.advance_to(0.5, timer)
    assert timer.reschedule(task, delay)
    assert task.deadline == ran_at
    assert len(timer) == 1
    clock.advance_to(10.0, timer)
    assert task.ran_at == [ran_at]


def test_rescheduling_a_task_that_is_not_scheduled_adds_it() -> None:
    clock = Clock()
    timer = started(clock)
    task = Task(clock)
    assert timer.reschedule(task, 1.0)
    clock.advance_to(1.0, timer)
    assert timer.reschedule(task, 1.0)
    clock.advance_to(2.0, timer)
    assert task.ran_at == [1.0, 2.0]


def test_a_later_deadline_costs_one_wakeup_when_the_old_slot_starts() -> None:
    clock = Clock()
    timer = started(clock)
    (task,) = scheduled(timer, clock, 0.010)
    for delay in (0.012, 0.020):
        assert timer.reschedule(task, delay)
    assert (len(clock.handles), timer.next_wakeup, timer.wheel.locate(task)) == (1, 0.010, (0, 10))
    clock.advance_to(0.015, timer)
    assert (task.ran_at, timer.wakeups, timer.next_wakeup) == ([], 1, 0.020)
    clock.advance_to(1.0, timer)
    assert (task.ran_at, timer.wakeups, timer.armed) == ([0.020], 2, False)


def test_an_earlier_deadline_moves_a_postponed_task_at_once() -> None:
    clock = Clock()
    timer = started(clock)
    (task,) = scheduled(timer, clock, 0.010)
    assert timer.reschedule(task, 0.020)
    assert timer.reschedule(task, 0.005)
    assert (task.deadline, timer.next_wakeup) == (0.005, 0.005)
    clock.advance_to(1.0, timer)
    assert (task.ran_at, timer.wakeups) == ([0.005], 1)


def test_moving_postponed_tasks_on_also_happens_in_slices() -> None:
    class Working(Clock):
        def time(self) -> float:
            self.now += 0.0001
            return self.now

    clock = Working()
    timer = started(clock, slice_seconds=0.005)
    tasks = scheduled(timer, clock, *[10.0] * 500)
    clock.now = 9.999
    # The first look moves the slot of the higher level down.
    while timer.run_due():
        pass
    for task in tasks:
        assert timer.reschedule(task, 10.0)
    clock.now = 10.1
    assert timer.run_due()
    assert 0 < sum(timer.wheel.locate(task)[0] == 0 for task in tasks) < 500
    while timer.run_due():
        pass
    assert len(timer) == 500
    assert not any(task.ran_at for task in tasks)


@pytest.mark.skipif(COMPILED, reason="compiled code makes its slots without looking up their class")
def test_a_task_that_is_removed_while_it_moves_on_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(*arguments: Any) -> Bucket:
        timer.remove(task)
        return Bucket(*arguments)

    clock = Clock()
    timer = started(clock)
    (task,) = scheduled(timer, clock, 0.003)
    timer.reschedule(task, 0.050)
    monkeypatch.setattr("purgatory._core.timer.wheel.Bucket", make)
    clock.advance_to(1.0, timer)
    assert task.ran_at == []


def test_a_removed_task_does_not_run_and_cannot_be_removed_again() -> None:
    clock = Clock()
    timer = started(clock)
    task, other = scheduled(timer, clock, 1.0, 1.0)
    assert timer.remove(task) is True
    assert timer.remove(task) is False
    clock.advance_to(2.0, timer)
    assert (task.ran_at, other.ran_at) == ([], [1.0])
    assert timer.remove(other) is False


def test_a_task_can_add_itself_again_while_it_runs() -> None:
    clock = Clock()
    timer = started(clock)
    task = Task(clock)
    task.action = lambda: timer.add(task, 1.0)
    timer.add(task, 1.0)
    clock.advance_to(5.0, timer)
    assert task.ran_at == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(clock.armed) == 1


# Deadlines in the past and beyond all time


@pytest.mark.parametrize("now", [7.0, 7.0004], ids=["at the start of a tick", "between two ticks"])
@pytest.mark.parametrize("delay", [0, 0.0, -0.001, -1e300, -math.inf])
def test_a_task_that_is_due_already_is_not_kept(delay: float, now: float) -> None:
    clock = Clock(5.0)
    timer = started(clock)
    clock.now = now
    task = Task(clock)
    assert timer.add(task, delay) is False
    assert not task.scheduled
    assert (len(timer), timer.armed) == (0, False)
    clock.advance_to(10.0, timer)
    assert task.ran_at == []


def test_a_delay_below_the_resolution_of_the_clock_is_due_already_at_the_start_of_a_tick() -> None:
    clock = Clock(5.0)
    timer = started(clock)
    task = Task(clock)
    clock.now = 7.0
    assert timer.add(task, 1e-300) is False
    assert (len(timer), timer.armed, task.deadline) == (0, False, None)
    clock.now = 7.0004
    assert timer.add(task, 1e-300) is True
    clock.advance_to(8.0, timer)
    assert task.ran_at == [pytest.approx(7.001)]


@pytest.mark.parametrize(("delay", "deadline"), [(math.inf, None), (1e300, 1e300), (2.0**53, 2.0**53)])
def test_a_task_that_is_too_far_away_is_never_due_and_not_kept(delay: float, deadline: float | None) -> None:
    clock = Clock()
    timer = started(clock)
    task = Task(clock)
    assert timer.add(task, delay) is True
    assert task.deadline == deadline
    assert not task.scheduled
    assert (len(timer), timer.armed) == (0, False)


def test_a_deadline_a_hundred_thousand_years_away_is_kept() -> None:
    clock = Clock()
    timer = started(clock)
    century = 100 * 365.25 * 86_400
    (task,) = scheduled(timer, clock, 1000 * century)
    assert len(timer) == 1
    clock.advance_to(1000 * century - 1, timer)
    assert task.ran_at == []
    clock.advance_to(1000 * century, timer)
    assert task.ran_at == [1000 * century]


# Slices


def test_moving_many_tasks_to_a_lower_level_also_happens_in_slices() -> None:
    class SlowClock(Clock):
        """A clock on which each reading takes so many seconds."""

        reading = 0.0

        def time(self) -> float:
            self.now += self.reading
            return self.now

    clock = SlowClock()
    timer = started(clock, slice_seconds=0.005)
    tasks = scheduled(timer, clock, *[100.0 + number / 20_000 for number in range(10_000)])
    due = timer.wheel.next_expiration()
    assert due is not None
    clock.now = due / 1000 + 0.5
    clock.reading = 0.001
    assert timer.run_due()
    assert len(timer) == 10_000
    assert not any(task.ran_at for task in tasks)
    levels = [timer.wheel.locate(task)[0] for task in tasks]
    # Some tasks have moved, and the rest wait for the next slice.
    assert min(levels) < max(levels)


def test_drive_runs_every_due_task_and_arms_for_the_next_one() -> None:
    clock = Clock()
    timer = started(clock, slice_seconds=0.005)
    due = [Task(clock, action=lambda: clock.spend(0.0001)) for _ in range(500)]
    for task in due:
        timer.add(task, 1.0)
    scheduled(timer, clock, 1.2)
    clock.now = 1.0
    timer.drive()
    assert all(len(task.ran_at) == 1 for task in due)
    assert len(timer) == 1
    assert len(clock.armed) == 1
    assert 1.1 < clock.armed[0] <= 1.2


# Tasks that raise


@pytest.mark.parametrize("error", [OSError("no such thing"), asyncio.CancelledError("withdrawn")], ids=repr)
def test_an_exception_goes_to_the_loops_exception_handler_and_the_others_run(error: BaseException) -> None:
    clock = Clock()
    timer = started(clock)

    def fail() -> None:
        raise error

    tasks = [Task(clock, name=f"task {n}", action=fail if n % 2 else None) for n in range(6)]
    for task in tasks:
        timer.add(task, 1.0)
    scheduled(timer, clock, 2.0)
    clock.advance_to(1.0, timer)
    assert all(task.ran_at == [1.0] for task in tasks)
    assert [context["exception"] for context in clock.reported] == [error] * 3
    assert clock.reported[0]["message"] == "task 1 raised an exception when it was due"
    assert len(timer) == 1
    assert timer.armed


class Stop(BaseException):
    """A BaseException, which has to propagate."""


def stop() -> None:
    raise Stop


def test_a_base_exception_propagates_and_no_other_due_task_is_lost() -> None:
    clock = Clock()
    timer = started(clock)
    tasks = [Task(clock, action=stop if n == 2 else None) for n in range(40)]
    for task in tasks:
        timer.add(task, 1.0)
    with pytest.raises(Stop):
        clock.advance_to(1.0, timer)
    assert clock.reported == []
    # The timer is armed for the remaining tasks.
    assert clock.armed == [1.0]
    clock.advance_to(1.0, timer)
    assert [task.ran_at for task in tasks] == [[1.0]] * 40


# Starting and stopping


def test_a_timer_that_was_not_started_refuses_tasks_and_says_so() -> None:
    timer = Timer()
    task = Task(Clock())
    add, reschedule = partial(timer.add, task, 1.0), partial(timer.reschedule, task, 1.0)
    for call in (add, reschedule, timer.run_due, timer.drive):
        with pytest.raises(RuntimeError, match=r"is not started: call start\(loop\) first"):
            call()
    assert timer.remove(task) is False
    assert (len(timer), timer.armed, task.deadline) == (0, False, None)


def test_a_timer_can_be_started_only_once() -> None:
    clock = Clock(3.0)
    timer = started(clock)
    with pytest.raises(RuntimeError, match="was started before"):
        timer.start(Clock(99.0))
    (task,) = scheduled(timer, clock, 1.0)
    assert task.deadline == 4.0


async def test_a_timer_is_run_by_one_reaper_at_a_time(virtual_time: VirtualTimeLoop) -> None:
    timer = Timer()
    timer.start(virtual_time)
    task = Task(virtual_time)
    async with running(timer) as reaper:
        with pytest.raises(RuntimeError, match="a reaper drives this timer already"):
            await reap(timer)
        assert not reaper.done()
        timer.add(task, 1.0)
        await asyncio.sleep(2.0)
    assert task.ran_at == [1.0]


async def test_stopping_a_timer_ends_its_reaper_and_keeps_the_tasks(
    virtual_time: VirtualTimeLoop,
) -> None:
    timer = Timer()
    timer.start(virtual_time)
    task, late = Task(virtual_time), Task(virtual_time)
    reaper = asyncio.create_task(reap(timer))
    timer.add(task, 1.0)
    await asyncio.sleep(0.5)
    timer.stop()
    await reaper
    assert virtual_time.time() == 0.5
    assert task.scheduled
    assert not timer.armed
    assert timer.add(late, 1.0)
    assert not timer.armed
    await asyncio.sleep(5.0)
    assert (task.ran_at, late.ran_at, timer.wakeups) == ([], [], 0)


async def test_the_reaper_of_a_stopped_timer_returns_at_once(virtual_time: VirtualTimeLoop) -> None:
    timer = Timer()
    timer.start(virtual_time)
    task = Task(virtual_time)
    timer.add(task, 1.0)
    timer.stop()
    await reap(timer)
    assert (virtual_time.time(), timer.armed, task.ran_at) == (0.0, False, [])


async def test_a_timer_that_one_of_its_tasks_stops_arms_nothing_any_more(
    virtual_time: VirtualTimeLoop,
) -> None:
    timer = Timer()
    timer.start(virtual_time)
    stopper = Task(virtual_time, action=timer.stop)
    same_instant, later = Task(virtual_time), Task(virtual_time)
    timer.add(stopper, 1.0)
    timer.add(same_instant, 1.0)
    timer.add(later, 2.0)
    await reap(timer)
    assert virtual_time.time() == 1.0
    assert not timer.armed
    timer.add(Task(virtual_time), 1.0)
    assert not timer.armed
    wakeups = timer.wakeups
    await asyncio.sleep(5.0)
    assert later.ran_at == []
    assert timer.wakeups == wakeups


async def test_a_cancelled_reaper_leaves_no_timer_armed_and_can_be_run_again(
    virtual_time: VirtualTimeLoop,
) -> None:
    timer = Timer()
    timer.start(virtual_time)
    task = Task(virtual_time)
    timer.add(task, 1.0)
    reaper = asyncio.create_task(reap(timer))
    await asyncio.sleep(0.5)
    reaper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reaper
    assert not timer.armed
    async with running(timer):
        await asyncio.sleep(1.0)
    assert task.ran_at == [1.0]


async def test_time_that_passes_before_the_reaper_first_runs_makes_no_task_early_or_lost(
    virtual_time: VirtualTimeLoop,
) -> None:
    timer = Timer()
    timer.start(virtual_time)
    overdue, waiting = Task(virtual_time), Task(virtual_time)
    timer.add(overdue, 1.0)
    timer.add(waiting, 7.0)
    await asyncio.sleep(5.0)
    async with running(timer):
        assert overdue.ran_at == [5.0]
        await asyncio.sleep(5.0)
    assert waiting.ran_at == [7.0]


# Bad input


@pytest.mark.parametrize("seconds", [0, -1.0, math.inf, math.nan])
def test_a_slice_that_is_not_a_positive_number_of_seconds_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="slice_seconds must be a positive number of seconds"):
        Timer(slice_seconds=seconds)


def test_a_delay_that_is_not_a_number_is_refused_and_changes_nothing() -> None:
    clock = Clock()
    timer = started(clock)
    (task,), new = scheduled(timer, clock, 1.0), Task(clock)
    for call in (partial(timer.add, new), partial(timer.reschedule, task)):
        with pytest.raises(ValueError, match="NaN"):
            call(math.nan)
    assert (len(timer), new.scheduled, new.deadline, task.deadline) == (1, False, None, 1.0)


@pytest.mark.parametrize("delay", [0.5, 5.0, 0.0, math.inf, 1e300])
def test_adding_a_scheduled_task_again_is_refused_and_does_not_change_it(delay: float) -> None:
    clock = Clock()
    timer = started(clock)
    (task,) = scheduled(timer, clock, 1.0)
    with pytest.raises(RuntimeError, match="is in a timing wheel already"):
        timer.add(task, delay)
    assert task.deadline == 1.0
    assert len(timer) == 1
    clock.advance_to(10.0, timer)
    assert task.ran_at == [1.0]


@pytest.mark.parametrize("method", ["add", "reschedule"])
@pytest.mark.parametrize("delay", [5.0, 0.0, -1.0, math.inf, 1e300])
def test_a_task_of_another_timer_is_refused_and_stays_there(delay: float, method: str) -> None:
    clock = Clock()
    here, there = started(clock), started(clock)
    (task,) = scheduled(there, clock, 1.0)
    with pytest.raises(RuntimeError, match="is in a timing wheel already"):
        getattr(here, method)(task, delay)
    assert here.remove(task) is False
    assert task.deadline == 1.0
    assert (len(here), len(there)) == (0, 1)
    clock.now = 1.0
    there.drive()
    assert task.ran_at == [1.0]


# Inspection


def test_a_timer_has_a_wheel_a_length_and_a_repr_of_one_line() -> None:
    clock = Clock()
    timer = started(clock, wheel_size=20)
    (task,) = scheduled(timer, clock, 0.350)
    assert timer.wheel.locate(task) == (1, 17)
    assert len(timer) == len(timer.wheel) == 1
    assert repr(timer) == "<Timer tick=0.001 tasks=1 wakeups=0>"


# Loops whose time() is truncated to milliseconds, as uvloop's is


class MillisecondClock(Clock, asyncio.AbstractEventLoop):
    """A loop whose time() is the monotonic clock, truncated to whole milliseconds."""

    def __init__(self, exact: float) -> None:
        super().__init__(exact)
        self.looks = 0
        # n -> the time to which the clock jumps while it is read for the n-th time.
        self.jumps: dict[int, float] = {}

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        self.now = self.jumps.get(self.looks, self.now)
        self.looks += 1
        return math.floor(self.now * 1000 + 1e-7) / 1000


@contextmanager
def monotonic_time_of(clock: MillisecondClock) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", clock.monotonic)
        yield


def test_on_a_loop_with_a_truncated_clock_a_timeout_begins_at_the_exact_time() -> None:
    clock = MillisecondClock(1000.0009)
    with monotonic_time_of(clock):
        timer = started(clock)
        (task,) = scheduled(timer, clock, 0.005)
        assert task.deadline == pytest.approx(1000.0059, abs=1e-9)
        clock.now = 1000.0058
        timer.drive()
        assert task.ran_at == []
        clock.now = 1000.0061
        timer.drive()
        assert task.ran_at == [1000.006]


@pytest.mark.parametrize("look", [0, 1, 2])
def test_timeouts_begin_at_the_exact_time_even_if_a_millisecond_passes_during_start(look: int) -> None:
    clock = MillisecondClock(1000.0009999)
    clock.jumps = {look: 1000.0010001}
    with monotonic_time_of(clock):
        timer = started(clock)
        clock.now = 1000.0029
        (task,) = scheduled(timer, clock, 0.005)
        assert task.deadline == pytest.approx(1000.0079, abs=1e-9)


# From the second start, every other millisecond is a rounding error earlier than the tick that it begins.
@pytest.mark.parametrize("start", [1000.0, 3456.789])
@pytest.mark.parametrize("tick", [0.001, 0.0001, 0.0007, 1 / 3000])
def test_the_reaper_works_with_a_clock_of_the_loop_that_lags_behind_the_exact_one(
    tick: float, start: float
) -> None:
    clock = MillisecondClock(start)
    with monotonic_time_of(clock):
        timer = started(clock, tick=tick)
        tasks: list[tuple[float, Task]] = []
        for step in range(3000):
            clock.now = start + step * 0.0003
            task = Task(clock)
            tasks.append((clock.now + 0.002, task))
            timer.add(task, 0.002)
            timer.drive()
        clock.now += 0.010
        timer.drive()
        assert all(len(task.ran_at) == 1 for _, task in tasks)
        assert min(task.ran_at[0] - deadline for deadline, task in tasks) > -1e-9


# Real time on asyncio's loop and on uvloop, which virtual time cannot show


class Waiting(TimerTask):
    def __init__(self, done: asyncio.Event | None = None) -> None:
        super().__init__()
        self.ran_at = math.nan
        self.done = done

    def run(self) -> None:
        self.ran_at = time.monotonic()
        if self.done is not None:
            self.done.set()


@pytest.mark.real_time
@pytest.mark.parametrize("tick", [0.001, 0.0007, 0.0001])
async def test_by_the_monotonic_clock_no_task_is_early_and_no_slot_wakes_the_loop_repeatedly(
    tick: float,
) -> None:
    loop = asyncio.get_running_loop()
    timer = Timer(tick=tick)
    timer.start(loop)
    done = asyncio.Event()
    expected: list[tuple[float, Waiting]] = []
    slots = 0
    async with running(timer):
        for number in range(25):
            # The starts are spread over the millisecond, so that a truncated clock makes a difference.
            begun = time.monotonic()
            while time.monotonic() < begun + 0.00037:
                pass
            task, delay = Waiting(), 0.002 + number * 0.0013
            expected.append((time.monotonic() + delay, task))
            assert timer.add(task, delay)
            slots += timer.wheel.locate(task)[0] + 1
            await asyncio.sleep(0)
        timer.add(Waiting(done), 0.06)
        async with asyncio.timeout(10):
            await done.wait()
    assert min(task.ran_at - deadline for deadline, task in expected) >= 0
    # One more is for the last task; a rounding error of the loop may double a few.
    assert timer.wakeups <= slots + 5


def test_a_timer_has_its_tick_its_origin_and_its_next_wakeup() -> None:
    clock = Clock(100.25)
    timer = started(clock, tick=0.5)
    assert (timer.tick, timer.origin, timer.next_wakeup) == (0.5, 100.25, None)
    (task,) = scheduled(timer, clock, 1.2)
    assert timer.next_wakeup == 101.75
    timer.remove(task)
    assert timer.next_wakeup is None
