"""Seconds on a timing wheel, with one armed `loop.call_at` for all tasks."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from math import inf
from typing import Any, Final, cast, final

from purgatory._core.timer.task import TimerTask
from purgatory._core.timer.wheel import DEFAULT_WHEEL_SIZE, TimingWheel
from purgatory.errors import safe_repr

# Beyond this many ticks a float does not distinguish one tick from the next: 285,000 years of milliseconds.
HORIZON: Final = float(1 << 53)

# A clock counts no shorter times than a microsecond, and nobody waits for days with a resolution of a day.
SHORTEST_TICK: Final = 1e-6
LONGEST_TICK: Final = 86_400.0

# A look at the clock costs as much as moving two tasks down, so one look serves for this many.
BATCH: Final = 256

# A tick beyond the horizon, for which nothing is armed.
NEVER: Final = 1 << 54


@final
class Timer:
    """Runs each `TimerTask` at its deadline with one timer of the event loop, however many tasks there are.

    `tick` is the resolution in seconds. A task never runs before its deadline, and on an idle loop it runs
    less than one tick after it. `slice_seconds` bounds how long `run_due` holds the loop at a time.

    Call `start`, then await `purgatory.reaper.reap(timer)` in a task, and `add` tasks from the loop's thread.
    The model is Kafka's `SystemTimer`, whose reaper is a thread that wakes five times a second. This timer
    sleeps until the next occupied slot starts. With an empty wheel no timer of the loop is armed.
    """

    __slots__ = (
        "_alarm",
        "_armed",
        "_fresh_until",
        "_handle",
        "_loop",
        "_origin",
        "_reaped",
        "_tick",
        "_wheel",
        "_whole_milliseconds",
        "clock",
        "early",
        "slice_seconds",
        "slices",
        "stopped",
        "wakeups",
    )

    def __init__(
        self, *, tick: float = 0.001, wheel_size: int = DEFAULT_WHEEL_SIZE, slice_seconds: float = 0.005
    ) -> None:
        if not SHORTEST_TICK <= tick <= LONGEST_TICK:
            bounds = f"from {SHORTEST_TICK} to {LONGEST_TICK}"
            raise ValueError(f"tick must be a number of seconds {bounds}, not {tick!r}")
        if not (slice_seconds > 0 and math.isfinite(slice_seconds)):
            raise ValueError(f"slice_seconds must be a positive number of seconds, not {slice_seconds!r}")
        self._tick = float(tick)
        self.slice_seconds = float(slice_seconds)
        self._wheel = TimingWheel(wheel_size)
        # The event loop, once the timer is started.
        self._loop: Any = None
        # Deadlines count from this clock: the loop's time, as exact as it can be read (see `clock_of`).
        self.clock: Callable[[], float] = _not_started
        # Whether that clock is more exact than the loop's own time.
        self._whole_milliseconds = False
        # The loop's time at tick 0.
        self._origin = 0.0
        # The wheel's `now` is right until the loop's time reaches this.
        self._fresh_until = 0.0
        self._handle: asyncio.TimerHandle | None = None
        # The tick for which the handle is armed. -1 while the reaper is awake and nothing needs arming.
        self._armed = NEVER
        self._alarm: asyncio.Future[None] | None = None
        self._reaped = False
        self.stopped = False
        # Whether a task has ever had to wake before its deadline. Until then, nobody pays for that.
        self.early = False
        # How often the loop has woken the timer, and how often the reaper has paused between two slices.
        self.wakeups = 0
        self.slices = 0

    def __len__(self) -> int:
        return len(self._wheel)

    def __repr__(self) -> str:
        return f"<Timer tick={self._tick} tasks={len(self._wheel)} wakeups={self.wakeups}>"

    @property
    def wheel(self) -> TimingWheel:
        """The wheel, for inspection."""
        return self._wheel

    @property
    def armed(self) -> bool:
        """Whether a timer of the event loop is armed."""
        return self._handle is not None

    @property
    def tick(self) -> float:
        """The resolution in seconds."""
        return self._tick

    @property
    def origin(self) -> float:
        """The loop's time, in seconds, at which tick 0 of the wheel started."""
        return self._origin

    @property
    def next_wakeup(self) -> float | None:
        """The loop's time, in seconds, for which the loop's timer is armed. None while it is not armed."""
        return None if self._handle is None else self._start_of(self._armed)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the time from `loop` from now on. Raises RuntimeError when called twice."""
        if self._loop is not None:
            raise RuntimeError("this timer was started before: make a new Timer")
        self._loop = loop
        self._origin = self._fresh_until = loop.time()
        self._whole_milliseconds = _counts_whole_milliseconds(loop)
        self.clock = clock_of(loop)

    def add(self, task: TimerTask, delay: float) -> bool:
        """Schedule `task` to run `delay` seconds from now, rounded up to a tick, and set its `deadline`.

        False, and nothing stored, when it is due already. A task with an infinite delay, or one beyond
        2**53 ticks, is never due: the answer is True, and the wheel does not store it. Raises RuntimeError
        when the task is in a wheel already or the timer is not started, ValueError when `delay` is NaN.
        """
        if task._bucket is not None:
            raise RuntimeError(f"{task!r} is in a timing wheel already: remove it first, or reschedule it")
        return self.schedule(task, delay)

    def reschedule(self, task: TimerTask, delay: float) -> bool:
        """Give `task` a new delay, as `add` does, whether or not it is scheduled.

        When the loop refuses to arm its timer, the task keeps its deadline.
        """
        scheduled = self.schedule(task, delay)
        if not scheduled:
            task._deadline = self.clock()
        if not self._wheel._tasks:
            self._disarm()
        return scheduled

    def schedule(self, task: TimerTask, delay: float) -> bool:
        """Do what `reschedule` does, but leave the loop's timer armed when the wheel becomes empty."""
        if not delay > 0:
            if delay != delay:
                raise ValueError("delay must be a number of seconds, not NaN")
            self._wheel.free(task)
            return False
        now = self.clock()
        deadline = now + delay
        return self._place(task, now, deadline, deadline)

    def wake_at(self, task: TimerTask, when: float) -> None:
        """Wake `task` at the loop's time `when`, unless its deadline, which stays as it is, comes sooner.

        It wakes a tick from now at the earliest. A time at or beyond the deadline ends what was asked before.
        A task that has left the wheel to wake is put back, unless its deadline has come.
        """
        self.early = True
        now = self.clock()
        deadline = task._deadline
        self._place(task, now, min(max(when, now + self._tick), deadline), deadline)
        if not self._wheel._tasks:
            self._disarm()

    def keep_wake(self, task: TimerTask, delay: float) -> bool:
        """Give `task` a new deadline, and leave it in the slot in which it wakes before that.

        False, and nothing done, when it does not wake before both deadlines.
        """
        if task._bucket is None:
            return False
        start = self._start_of(task._expiration)
        if start >= task._deadline:
            return False
        deadline = self.clock() + delay
        if start >= deadline:
            return False
        task._deadline = deadline
        return True

    def _place(self, task: TimerTask, now: float, when: float, deadline: float) -> bool:
        """Put `task` into the slot of the tick to which `when` rounds up, and give it the deadline.

        False when that tick is over. Then the task is in no slot.
        """
        if now >= self._fresh_until:
            self._catch_up()
        ticks = (when - self._origin) / self._tick
        if ticks > HORIZON:
            self._wheel.free(task)
            task._deadline = deadline
            return True
        # Deadlines round up to a tick. (The pipeline's replay does so, too. A test of it compares the two.)
        # The division can be off by one, but the start of a tick is the sum that `_tick_at` and `_arm` use.
        expiration = int(ticks)
        if self._origin + expiration * self._tick < when:
            expiration += 1
        # The loop's timer is armed first, because the loop may refuse to.
        if expiration < self._armed and expiration > self._wheel._now:
            self._arm(expiration)
        scheduled = (
            self._wheel.add(task, expiration) if task._bucket is None else self._wheel.move(task, expiration)
        )
        if scheduled:
            task._deadline = deadline
        return scheduled

    def remove(self, task: TimerTask) -> bool:
        """Remove `task`, O(1). False when it is not scheduled."""
        removed = self._wheel.remove(task)
        if not self._wheel._tasks:
            self._disarm()
        return removed

    def run_due(self, seconds: float | None = None) -> bool:
        """Run the tasks that are due, for `seconds` or one slice. Returns whether there may be more.

        It reads the clock after every task, because a task is a user's code and may take long. An Exception
        or a CancelledError of a task goes to the loop's exception handler, and the next task runs.
        """
        until = self.clock() + (self.slice_seconds if seconds is None else seconds)
        tick = self._tick_at(self._loop.time())
        wheel = self._wheel
        # The wheel keeps its `now` until this slice is done, whatever the tasks add to it.
        self._fresh_until = inf
        try:
            while wheel.reach(tick):
                if wheel.sink(BATCH) < BATCH:
                    task = wheel.pop()
                    while task is not None:
                        # If not, it has a later expiration by now, or a finalizer has just removed it.
                        if task._bucket is None and task._expiration <= wheel._now:
                            self._run(task)
                        if self.clock() >= until:
                            return True
                        task = wheel.pop()
                elif self.clock() >= until:
                    return True
            return False
        finally:
            self._fresh_until = 0.0

    def attach_reaper(self) -> None:
        """Reserve the timer for one reaper. Raises RuntimeError while another one drives it."""
        if self._reaped:
            raise RuntimeError("a reaper drives this timer already")
        self._reaped = True

    def detach_reaper(self) -> None:
        """Disarm the loop's timer, and let another reaper drive this one."""
        self._alarm = None
        self._disarm()
        self._reaped = False

    def wake(self) -> None:
        """Disarm the loop's timer: the reaper is awake, and looks at the wheel before it sleeps."""
        self._disarm()
        self._armed = -1

    def sleep(self) -> asyncio.Future[None]:
        """Arm the loop's timer for the next occupied slot. The future is done when the reaper has to wake."""
        self._arm_next()
        self._alarm = self._loop.create_future()
        return cast("asyncio.Future[None]", self._alarm)

    def stop(self) -> None:
        """Have the reaper return at its next turn, and arm nothing any more. Tasks stay in the wheel."""
        self.stopped = True
        self._sound()
        self._disarm()
        self._armed = -1

    def drive(self) -> None:
        """Run all that is due and arm the next wake-up. For clocks that are moved by hand."""
        try:
            while self.run_due():
                pass
        finally:
            self._arm_next()

    def _run(self, task: TimerTask) -> None:
        try:
            if self.early and self._start_of(task._expiration) < task._deadline:
                task._wake()
            else:
                task.run()
        except (Exception, asyncio.CancelledError) as error:
            # Nobody has cancelled the reaper: the task has awaited or read something that was cancelled.
            self._loop.call_exception_handler(
                {"message": f"{safe_repr(task)} raised an exception when it was due", "exception": error}
            )

    def _ring(self) -> None:
        self._handle = None
        self._armed = -1
        self.wakeups += 1
        self._sound()

    def _sound(self) -> None:
        alarm = self._alarm
        if alarm is not None and not alarm.done():
            alarm.set_result(None)

    def _arm(self, tick: int) -> None:
        when = self._start_of(tick)
        if self._whole_milliseconds:
            # The loop rounds down, and would wake the timer again and again until the tick starts.
            when = math.ceil(when * 1000 - 1e-6) / 1000
        handle = self._loop.call_at(when, self._ring)
        if self._armed < tick:
            # In that call, a finalizer has armed it for an earlier tick, or has stopped it.
            handle.cancel()
            return
        armed = self._handle
        self._handle = handle
        self._armed = tick
        if armed is not None:
            armed.cancel()

    def _arm_next(self) -> None:
        self._disarm()
        self._armed = NEVER
        if self._wheel._tasks:
            self._arm(self._wheel.next_start())

    def _disarm(self) -> None:
        handle = self._handle
        if handle is not None:
            self._handle = None
            self._armed = NEVER
            handle.cancel()

    def _start_of(self, tick: int) -> float:
        """The loop's time at which `tick` starts."""
        return self._origin + tick * self._tick

    def _tick_at(self, now: float) -> int:
        """The last tick that has started at `now`."""
        if self._whole_milliseconds:
            # Sums of whole milliseconds are off by a rounding error, and the next one is far away.
            now += 1e-9
        tick = int((now - self._origin) / self._tick)
        if self._start_of(tick) > now:
            tick -= 1
        elif self._start_of(tick + 1) <= now:
            tick += 1
        return tick

    def _catch_up(self) -> None:
        """Advance the wheel as far as nothing is due, so that new tasks go to the level they belong to.

        A wheel that moves only when something expires falls behind while every operation completes early.
        It would put near deadlines on high levels and later move them down one by one. At most once a tick.
        """
        # The loop's time, because the clock of the deadlines may be ahead of it.
        tick = self._tick_at(self._loop.time())
        if tick > self._wheel.now:
            self._wheel.reach(tick)
        self._fresh_until = self._start_of(tick + 1)


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """A function that returns the loop's time. It bypasses a loop that is slow or inexact."""
    monotonic = getattr(loop.time, "__func__", None) is asyncio.BaseEventLoop.time
    return time.monotonic if monotonic or _counts_whole_milliseconds(loop) else loop.time


def _not_started() -> float:
    raise RuntimeError("this timer is not started: call start(loop) first")


def _counts_whole_milliseconds(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the loop's time is the monotonic clock cut to milliseconds, as uvloop's is.

    A timeout that counts from a time cut to milliseconds ends up to one millisecond early, as in Kafka. So a
    wait starts at the time of the clock itself. It is over by the loop's time, which lags behind.
    """
    # A loop that is made by hand may show any time by chance.
    other = isinstance(loop, asyncio.AbstractEventLoop) and not isinstance(loop, asyncio.BaseEventLoop)
    return other and abs(loop.time() - time.monotonic()) < 0.01
