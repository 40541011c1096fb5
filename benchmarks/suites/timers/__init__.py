"""Timers alone: timeouts that are cancelled, renewed, or wait while nothing is due."""

from benchmarks.harness.setting import Entry
from benchmarks.suites.timers.idle import idle
from benchmarks.suites.timers.sessions import sessions
from benchmarks.suites.timers.timers import timers

BENCHMARKS = {
    "timers": Entry(timers, (100_000, 10_000), (100_000, 10_000, 1_000_000)),
    "sessions": Entry(sessions, (100_000,), (100_000, 10_000, 1_000_000)),
    "idle": Entry(idle, (100_000,), (100_000,)),
}
