"""What carries the signals, and the servers that it needs."""

from __future__ import annotations

from benchmarks.suites.signals import libraries, relayed
from benchmarks.suites.signals.carrier import Carrier

# The state that signals over NATS are about is in a Redis.
CARRIERS: dict[str, tuple[type[Carrier], tuple[str, ...]]] = {
    "purgatory.relay, Redis, notify": (relayed.OverRedis, ("redis",)),
    "purgatory.relay, Redis, signal": (relayed.OverRedisAfterwards, ("redis",)),
    "purgatory.relay, PostgreSQL, notify": (relayed.OverPostgres, ("postgres",)),
    "purgatory.relay, PostgreSQL, signal": (relayed.OverPostgresAfterwards, ("postgres",)),
    "purgatory.relay, NATS, signal": (relayed.OverNats, ("redis", "nats")),
    "channels_redis, pub/sub layer": (libraries.PubSubLayer, ("redis",)),
    "channels_redis, core layer": (libraries.CoreLayer, ("redis",)),
    "broadcaster": (libraries.Broadcaster, ("redis",)),
}
