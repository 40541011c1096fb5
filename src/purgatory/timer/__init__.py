"""Layer 1: tasks, the wheel that orders them in whole ticks, and the timer that puts seconds on it."""

from purgatory.timer.task import TimerTask
from purgatory.timer.timer import Timer, clock_of, pause
from purgatory.timer.wheel import DEFAULT_WHEEL_SIZE, TimingWheel

__all__ = ["DEFAULT_WHEEL_SIZE", "Timer", "TimerTask", "TimingWheel", "clock_of", "pause"]
