"""The carriers that are installed, by name."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from benchmarks.suites.signals.carrier import Carrier

# The class of each, and the package that it needs.
KINDS = {
    "purgatory.relay, Redis, notify": ("purgatory_relay.OverRedis", "redis"),
    "purgatory.relay, Redis, signal": ("purgatory_relay.OverRedisAfterwards", "redis"),
    "purgatory.relay, PostgreSQL, notify": ("purgatory_relay.OverPostgres", "asyncpg"),
    "purgatory.relay, PostgreSQL, signal": ("purgatory_relay.OverPostgresAfterwards", "asyncpg"),
    "purgatory.relay, NATS, signal": ("purgatory_relay.OverNats", "nats"),
    "channels_redis, pub/sub layer": ("channel_layers.PubSubLayer", "channels_redis"),
    "channels_redis, core layer": ("channel_layers.CoreLayer", "channels_redis"),
    "broadcaster": ("broadcaster_channels.Broadcaster", "broadcaster"),
    "python-socketio, AsyncRedisManager": ("socketio_manager.Manager", "socketio"),
}
INSTALLED = [name for name, (_, package) in KINDS.items() if find_spec(package) is not None]


def carrier(name: str) -> type[Carrier]:
    module, _, kind = KINDS[name][0].partition(".")
    found: type[Carrier] = getattr(import_module(f"benchmarks.suites.signals.{module}"), kind)
    return found


def servers_of(name: str) -> list[str]:
    """The servers that a carrier needs. The state that signals over NATS are about is in a Redis."""
    return {"asyncpg": ["postgres"], "nats": ["redis", "nats"]}.get(KINDS[name][1], ["redis"])
