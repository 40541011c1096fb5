"""Layer 1: tasks, the wheel that orders them by tick, and the timer that converts seconds to ticks."""

from purgatory._core.timer.task import TimerTask
from purgatory._core.timer.timer import Timer, clock_of
from purgatory._core.timer.wheel import DEFAULT_WHEEL_SIZE, TimingWheel

__all__ = ["DEFAULT_WHEEL_SIZE", "Timer", "TimerTask", "TimingWheel", "clock_of"]
