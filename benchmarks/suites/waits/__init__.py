"""Waits for keys or a timeout: purgatory beside asyncio, anyio, code by hand and older designs."""

from benchmarks.suites.waits.checks import checks
from benchmarks.suites.waits.expiry import expiry, one_instant
from benchmarks.suites.waits.growth import growth
from benchmarks.suites.waits.memory import memory
from benchmarks.suites.waits.park_and_complete import one_key, three_keys
from benchmarks.suites.waits.steady_state import steady_state

BENCHMARKS = (one_key, three_keys, steady_state, expiry, one_instant, growth, checks, memory)
