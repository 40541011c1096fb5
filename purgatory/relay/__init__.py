"""Signals between processes: a write in one process wakes whoever waits in another.

A relay is level-triggered: a signal is a hint, and the shared state is the truth. A process that may have
missed a hint looks at the state again, and so misses nothing. (Publish and subscribe alone loses what is
published while a client reconnects: channels_redis #256, broadcaster #144. The idiom is from go-redis #1070:
subscribe, wait for the confirmation, read again.)
"""

from purgatory.relay.errors import RelayClosed
from purgatory.relay.keys import Key
from purgatory.relay.refresher import Refresh
from purgatory.relay.relay import Relay
from purgatory.relay.statistics import RelayStatistics
from purgatory.relay.texts import signal_text
from purgatory.relay.transport import Publication, Receiver, Transport

__all__ = [
    "Key",
    "Publication",
    "Receiver",
    "Refresh",
    "Relay",
    "RelayClosed",
    "RelayStatistics",
    "Transport",
    "signal_text",
]
