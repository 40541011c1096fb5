"""Signals between processes: whoever waits in one process is woken by a write in another.

The idea is level-triggered: a signal is a hint, and the shared state is the truth. A waiter that looks at the
state again whenever it may have missed a hint misses nothing.
"""

from purgatory.relay.engine import Engine, Message, Receiver

__all__ = ["Engine", "Message", "Receiver"]
