"""Durable delayed messages beside SQLite, Redis and NATS, and a delay service for Kafka in three designs.

All stores are used from one event loop with the same payloads of 100 bytes. Their servers and threads count,
in processor time and in memory. What polls does so every 10 ms.
"""

from benchmarks.suites.delayed.due import burst, lateness
from benchmarks.suites.delayed.pending import pending
from benchmarks.suites.delayed.rate import rate
from benchmarks.suites.delayed.service import designs

BENCHMARKS = (rate, lateness, burst, pending, designs)
