"""What a relay costs one process, without the transport, and what NOTIFY costs PostgreSQL."""

from benchmarks.suites.relay.notify import relay_notify
from benchmarks.suites.relay.process import relay_resync, relay_signals

BENCHMARKS = (relay_signals, relay_resync, relay_notify)
