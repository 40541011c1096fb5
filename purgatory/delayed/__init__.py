"""Durable delayed messages: any delay, through crashes, in a directory."""

from purgatory.delayed.dead_letters import DeadLetter
from purgatory.delayed.durable_operation import DurableOperation
from purgatory.delayed.durable_operations import DurableOperations
from purgatory.delayed.errors import IdTaken, StoreFailed, StoreLocked
from purgatory.delayed.message import PendingMessage, Receipt
from purgatory.delayed.messages import DelayedMessages
from purgatory.delayed.statistics import DelayedStatistics

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
