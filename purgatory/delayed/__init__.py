"""Durable delayed messages: any delay, through crashes, in a directory."""

from purgatory.delayed.durable.operation import DurableOperation
from purgatory.delayed.durable.operations import DurableOperations
from purgatory.delayed.message import PendingMessage, Receipt
from purgatory.delayed.messages import DelayedMessages
from purgatory.delayed.open_store import DelayedStatistics
from purgatory.delayed.storage.dead_letters import DeadLetter
from purgatory.delayed.storage.requests import IdTaken, StoreFailed, StoreLocked

__all__ = [
    "DeadLetter",
    "DelayedMessages",
    "DelayedStatistics",
    "DurableOperation",
    "DurableOperations",
    "IdTaken",
    "PendingMessage",
    "Receipt",
    "StoreFailed",
    "StoreLocked",
]
