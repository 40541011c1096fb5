"""Signals between processes: a write in one process wakes whoever waits in another.

A relay is level-triggered: a signal is a hint, and the shared state is the truth. Whoever may have missed a
hint looks at the state again, and so misses nothing. (Publish and subscribe alone loses what is published
while it reconnects: channels_redis #256, broadcaster #144. The idiom of subscribing, waiting for the
confirmation and reading again is that of go-redis #1070.)
"""

from purgatory.relay.engine import Engine, Message, Receiver
from purgatory.relay.errors import RelayClosed
from purgatory.relay.keys import Key
from purgatory.relay.message import signal_text
from purgatory.relay.refresher import Refresh
from purgatory.relay.relay import Relay
from purgatory.relay.statistics import RelayStatistics

__all__ = [
    "Engine",
    "Key",
    "Message",
    "Receiver",
    "Refresh",
    "Relay",
    "RelayClosed",
    "RelayStatistics",
    "signal_text",
]
