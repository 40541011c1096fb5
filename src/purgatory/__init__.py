"""Waiting, done right, in asyncio: operations that wait for a condition on a key, or for their timeout."""

from purgatory import operation as _operation
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import PurgatoryClosed, PurgatoryError, PurgatoryFull
from purgatory.observer import Observer
from purgatory.operation import OperationState
from purgatory.purgatory import Purgatory
from purgatory.statistics import PurgatoryStatistics
from purgatory.stay import Stay
from purgatory.timer import Timer, TimerTask, TimingWheel

__version__ = "0.1.0"

COMPILED: bool = not (_operation.__file__ or "").endswith(".py")
"""Whether the core that is loaded was compiled by mypyc, or runs interpreted."""

__all__ = [
    "COMPILED",
    "DelayedOperation",
    "Observer",
    "OperationState",
    "Purgatory",
    "PurgatoryClosed",
    "PurgatoryError",
    "PurgatoryFull",
    "PurgatoryStatistics",
    "Stay",
    "Timer",
    "TimerTask",
    "TimingWheel",
    "__version__",
]
