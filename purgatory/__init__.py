"""Wait in asyncio until a condition on a key holds, or until a timeout, whichever comes first."""

import os as _os

from purgatory._core import operation as _operation
from purgatory._core.outcome import OperationState
from purgatory._core.timer import Timer, TimerTask, TimingWheel
from purgatory.async_delayed_operation import AsyncDelayedOperation
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import (
    OperationWithdrawn,
    PurgatoryClosed,
    PurgatoryError,
    PurgatoryFull,
    PurgatoryNotOpen,
    QuorumNotReached,
    QuorumTimedOut,
)
from purgatory.observer import PurgatoryStatistics
from purgatory.purgatory import Purgatory
from purgatory.ready_made import DelayedQuorum, DelayedValue, Session
from purgatory.single_flight import SingleFlight

__version__ = "0.1.0"

COMPILED: bool = not (_operation.__file__ or "").endswith(".py")
"""Whether the core that is loaded is the one that mypyc compiled. False means that it runs interpreted."""

if not COMPILED and _os.environ.get("PURGATORY_REQUIRE_COMPILED", "") not in ("", "0"):
    raise ImportError(
        f"PURGATORY_REQUIRE_COMPILED is set, but the core in {__path__[0]} is interpreted: "
        "build it with a C compiler, or unset the variable"
    )

__all__ = [
    "COMPILED",
    "AsyncDelayedOperation",
    "DelayedOperation",
    "DelayedQuorum",
    "DelayedValue",
    "OperationState",
    "OperationWithdrawn",
    "Purgatory",
    "PurgatoryClosed",
    "PurgatoryError",
    "PurgatoryFull",
    "PurgatoryNotOpen",
    "PurgatoryStatistics",
    "QuorumNotReached",
    "QuorumTimedOut",
    "Session",
    "SingleFlight",
    "Timer",
    "TimerTask",
    "TimingWheel",
    "__version__",
]
