"""Waits for keys or a timeout: purgatory beside asyncio, anyio, code by hand and older designs."""

from functools import partial

from benchmarks.harness.setting import Entry
from benchmarks.suites.waits.checks import checks
from benchmarks.suites.waits.expiry import expiry, one_instant
from benchmarks.suites.waits.growth import growth
from benchmarks.suites.waits.memory import memory
from benchmarks.suites.waits.park_and_complete import parking
from benchmarks.suites.waits.steady_state import steady_state

BENCHMARKS = {
    "one-key": Entry(partial(parking, 1), (100_000, 10_000), (100_000, 10_000, 1_000_000)),
    "three-keys": Entry(partial(parking, 3), (100_000,), (100_000, 10_000, 1_000_000)),
    "steady-state": Entry(steady_state, (1_000,), (1_000, 10_000, 100_000)),
    "expiry": Entry(expiry, (100_000,), (100_000, 1_000_000)),
    "one-instant": Entry(one_instant, (100_000,), (100_000, 1_000_000)),
    "growth": Entry(growth, (100_000, 1_000, 10_000), (100_000, 1_000, 10_000)),
    "checks": Entry(checks, (100_000,), (100_000, 10_000, 1_000_000)),
    "memory": Entry(memory, (10_000,), (10_000,)),
}
