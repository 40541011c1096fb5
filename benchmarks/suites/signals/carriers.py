"""The carriers that are installed, by name."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from benchmarks.suites.signals.carrier import Carrier

# The class of each, and the package that it needs.
KINDS = {
    "purgatory.relay, notify": ("purgatory_relay.Relayed", "redis"),
    "purgatory.relay, signal": ("purgatory_relay.Signalled", "redis"),
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
