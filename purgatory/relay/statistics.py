"""What a relay counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RelayStatistics:
    """A relay's figures. Reading them costs O(1)."""

    connected: bool
    """Whether it hears: a heartbeat of its own has come back in time over the present connection."""
    heartbeat_age: float | None
    """Seconds since its last heartbeat arrived. None before the first one."""
    generation: int
    """How many connections there were, the present one included."""
    gaps: int
    """How often signals may have been missed."""
    keys: int
    """Keys that somebody watches here, or has watched a short while ago."""
    waiting: int
    """Keys, and shards of keys, that are to be refreshed and checked."""
    refreshes: int
    """Calls of `refresh`."""
    refreshed: int
    """Keys that were refreshed and checked. Without `refresh`, keys that were checked."""
    refresh_failures: int
    """Calls of `refresh` that have raised, or lasted too long."""
    signals: int
    """Signals that were given here."""
    arrived: int
    """Signals that have arrived from other processes, also of keys that nobody watches here."""
    published: int
    """Messages that the transport has taken, heartbeats included."""
    publish_failures: int
    """Attempts to publish that have failed."""
    collapses: int
    """How often many signals became one for a whole shard."""
    unreadable: int
    """Messages that this version cannot read."""
