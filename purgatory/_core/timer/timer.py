"""Seconds on a timing wheel: one armed `loop.call_at`, and a reaper that runs what is due in slices."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from math import inf
from typing import Final, cast, final

from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer.task import TimerTask
from purgatory._core.timer.wheel import DEFAULT_WHEEL_SIZE, TimingWheel

# Beyond this many ticks a float no longer tells one from the next: 285,000 years of milliseconds.
HORIZON: Final = float(1 << 53)

# How many tasks are moved down between two looks at the clock, which costs about as much as one of them.
BATCH: Final = 16

NEVER: Final = 1 << 62


@final
class Timer:
    """Runs each `TimerTask` at its deadline, however many there are, with one timer of the event loop.

    `tick` is the resolution in seconds: a task runs never before its deadline, and on an idle loop less than
    one tick after it. `slice_seconds` bounds how long `run_due` keeps the loop at a time.

    `start` it, then drive it with `run`, which is the reaper; `add` tasks from the loop's own thread.
    After Kafka's `SystemTimer`, whose reaper is a thread that wakes five times a second; this one
    sleeps until the next occupied slot and, with nothing in the wheel, has no timer armed at all.
    """

    __slots__ = (
        "_alarm",
        "_armed",
        "_fresh_until",
        "_handle",
        "_loop",
        "_origin",
        "_running",
        "_slice_seconds",
        "_stopped",
        "_tick",
        "_wheel",
        "_whole_milliseconds",
        "clock",
        "slices",
        "wakeups",
    )

    def __init__(
        self, *, tick: float = 0.001, wheel_size: int = DEFAULT_WHEEL_SIZE, slice_seconds: float = 0.005
    ) -> None:
        if not (tick > 0 and math.isfinite(tick)):
            raise ValueError(f"tick must be a positive number of seconds, not {tick!r}")
        if not (slice_seconds > 0 and math.isfinite(slice_seconds)):
            raise ValueError(f"slice_seconds must be a positive number of seconds, not {slice_seconds!r}")
        self._tick = float(tick)
        self._slice_seconds = float(slice_seconds)
        self._wheel = TimingWheel(wheel_size)
        self._loop: asyncio.AbstractEventLoop | None = None
        # What deadlines are counted from: the loop's time, as exact as it can be had (see `clock_of`).
        self.clock: Callable[[], float] = _not_started
        # Whether that is more exact than the loop's own time.
        self._whole_milliseconds = False
        # The loop's time at tick 0.
        self._origin = 0.0
        # The wheel's now is right until the loop's time is this.
        self._fresh_until = 0.0
        self._handle: asyncio.TimerHandle | None = None
        # The tick for which the handle is armed; nothing needs arming while the reaper is awake.
        self._armed = NEVER
        self._alarm: asyncio.Future[None] | None = None
        self._running = False
        self._stopped = False
        # How often the loop has woken the timer, and how often `run` has paused before it was through.
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
        """The loop's time in seconds at which the wheel's tick 0 began."""
        return self._origin

    @property
    def next_wakeup(self) -> float | None:
        """The loop's time in seconds for which its timer is armed; None while it is not."""
        return None if self._handle is None else self._origin + self._armed * self._tick

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the time from `loop` from now on. Raises RuntimeError when called twice."""
        if self._loop is not None:
            raise RuntimeError("this timer has been started already")
        self._loop = loop
        self._origin = self._fresh_until = loop.time()
        self._whole_milliseconds = _counts_whole_milliseconds(loop)
        self.clock = clock_of(loop)

    def add(self, task: TimerTask, delay: float) -> bool:
        """Have `task` run `delay` seconds from now, rounded up to a tick, and set its `deadline`.

        False, and nothing kept, when it is due already; infinity (and what is further away than 2**53
        ticks) is never due and not kept either, but True. Raises RuntimeError when the task is scheduled
        already or the timer not started, ValueError when `delay` is NaN.
        """
        if task._bucket is not None:
            raise RuntimeError(f"{task!r} is in a timing wheel already: remove it first, or reschedule it")
        now = self.clock()
        if now >= self._fresh_until:
            self._catch_up()
        deadline = now + delay
        ticks = (deadline - self._origin) / self._tick
        if ticks > HORIZON:
            task._deadline = deadline
            return True
        if not delay > 0:
            if delay != delay:
                raise ValueError("delay must be a number of seconds, not NaN")
            return False
        expiration = int(ticks)
        if self._origin + expiration * self._tick < deadline:
            expiration += 1
        if not self._wheel.add(task, expiration):
            return False
        task._deadline = deadline
        if expiration < self._armed:
            self._arm(expiration)
        return True

    def reschedule(self, task: TimerTask, delay: float) -> bool:
        """`add` it with a new delay, whether it is scheduled or not."""
        if delay != delay:
            raise ValueError("delay must be a number of seconds, not NaN")
        self._wheel.remove(task)
        added = self.add(task, delay)
        if not self._wheel._tasks:
            self._disarm()
        return added

    def remove(self, task: TimerTask) -> bool:
        """Take `task` out, O(1); False when it is not scheduled."""
        removed = self._wheel.remove(task)
        if not self._wheel._tasks:
            self._disarm()
        return removed

    def run_due(self) -> bool:
        """Run what is due, for one slice at most; whether there may be more.

        The clock is read after every task: they are others' code and may take long. An Exception that one
        raises, or a CancelledError, goes to the loop's exception handler and stops nothing else.
        """
        until = self.clock() + self._slice_seconds
        tick = self._tick_at(self._running_loop().time())
        # Until this is done the wheel stays where it is, whatever the tasks add to it.
        self._fresh_until = inf
        try:
            return self._run_until(tick, until)
        finally:
            self._fresh_until = 0.0

    def _run_until(self, tick: int, until: float) -> bool:
        wheel = self._wheel
        while wheel.reach(tick):
            if wheel.sink(BATCH) < BATCH:
                task = wheel.pop()
                while task is not None:
                    self._run(task)
                    if self.clock() >= until:
                        return True
                    task = wheel.pop()
            elif self.clock() >= until:
                return True
        return False

    async def run(self) -> None:
        """The reaper: run every task at its time, until `stop`. Yields to the loop between slices."""
        if self._running:
            raise RuntimeError("this timer is being run already")
        self._running = True
        try:
            while not self._stopped:
                # Awake: nothing needs arming, whatever is added.
                self._disarm()
                self._armed = -1
                if self.run_due():
                    self.slices += 1
                    await pause()
                elif not self._stopped:
                    self._arm_next()
                    self._alarm = asyncio.get_running_loop().create_future()
                    await self._alarm
        finally:
            self._alarm = None
            self._disarm()
            self._running = False

    def drive(self) -> None:
        """What the reaper does when it is woken, without pausing: for clocks that are moved by hand."""
        try:
            while self.run_due():
                pass
        finally:
            self._arm_next()

    def stop(self) -> None:
        """Have `run` return at its next turn, and arm nothing any more. Tasks stay where they are."""
        self._stopped = True
        self._disarm()
        self._armed = -1
        self._wake()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        return cast(asyncio.AbstractEventLoop, self._loop)

    def _run(self, task: TimerTask) -> None:
        try:
            task.run()
        except (Exception, asyncio.CancelledError) as error:
            # Nobody has cancelled the reaper: the task has looked at something that was cancelled.
            self._running_loop().call_exception_handler(
                {"message": f"{safe_repr(task)} raised an exception when it was due", "exception": error}
            )

    def _ring(self) -> None:
        self._handle = None
        self._armed = -1
        self.wakeups += 1
        self._wake()

    def _wake(self) -> None:
        alarm = self._alarm
        if alarm is not None and not alarm.done():
            alarm.set_result(None)

    def _arm(self, tick: int) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._armed = tick
        when = self._origin + tick * self._tick
        if self._whole_milliseconds:
            # Or the loop rounds down, and wakes us again and again until the time has come.
            when = math.ceil(when * 1000 - 1e-6) / 1000
        self._handle = self._running_loop().call_at(when, self._ring)

    def _arm_next(self) -> None:
        self._disarm()
        self._armed = NEVER
        start = self._wheel.next_expiration()
        if start is not None:
            self._arm(start)

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            self._armed = NEVER

    def _tick_at(self, now: float) -> int:
        """The last tick that has begun at `now`, by the same sum by which deadlines become ticks."""
        if self._whole_milliseconds:
            # Sums of such times are off by a rounding error, and the next one is a whole millisecond away.
            now += 1e-9
        tick = int((now - self._origin) / self._tick)
        if self._origin + tick * self._tick > now:
            tick -= 1
        elif self._origin + (tick + 1) * self._tick <= now:
            tick += 1
        return tick

    def _catch_up(self) -> None:
        """Let the wheel's time pass as far as nothing is due, so that tasks are put where they belong.

        A wheel that only moves when something expires would fall behind while everything completes early,
        and put near deadlines on high levels, to be moved down one by one later. At most once a tick.
        """
        # Not by the clock that deadlines are counted from, which may be ahead.
        tick = self._tick_at(self._running_loop().time())
        if tick > self._wheel.now:
            self._wheel.advance(tick, 0)
        self._fresh_until = self._origin + (tick + 1) * self._tick


async def pause() -> None:
    """Let the loop breathe between two slices, for three turns.

    A timer that came due during the slice is queued behind us in the first turn and wakes its task, which is
    queued behind us in the second. With fewer turns, a task that sleeps for a millisecond is kept waiting
    for two or three slices instead of one.
    """
    for _ in range(3):
        await asyncio.sleep(0)


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """What tells the loop's time, without the loop's help where that is faster, or more exact."""
    return time.monotonic if _is_monotonic(loop) or _counts_whole_milliseconds(loop) else loop.time


def _not_started() -> float:
    raise RuntimeError("this timer has not been started: call start(loop) first")


def _is_monotonic(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the loop's time is the monotonic clock, which can then be read without the loop's help."""
    return getattr(loop.time, "__func__", None) is asyncio.BaseEventLoop.time


def _counts_whole_milliseconds(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the loop's time is the monotonic clock cut to milliseconds, as uvloop's is.

    A timeout counted from that ends up to one millisecond early, which is what happens to Kafka's. So there
    the clock itself is read for the start, and the loop's time, which lags, decides when it is over.
    """
    return not isinstance(loop, asyncio.BaseEventLoop) and abs(loop.time() - time.monotonic()) < 0.01
