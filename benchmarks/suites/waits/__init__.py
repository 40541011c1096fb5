"""Waits for keys or a timeout: purgatory beside asyncio, anyio, code by hand and older designs."""

from benchmarks.suites.waits.expiry import expiry, one_instant
from benchmarks.suites.waits.growth import growth
from benchmarks.suites.waits.keys import checks, memory, one_key, steady_state, three_keys

BENCHMARKS = (one_key, three_keys, steady_state, expiry, one_instant, growth, checks, memory)
