"""The ways to wait that are compared, purgatory first in each list: the others are set in relation to it."""

from benchmarks.constructs.anyio_tasks import MoveOnAfterEvent
from benchmarks.constructs.asyncio_tasks import (
    CallLaterFuture,
    SharedFuture,
    TimeoutFuture,
    WaitFirstOfEvents,
    WaitForEvent,
)
from benchmarks.constructs.callbacks import (
    BareCallback,
    FutureCallback,
    SeveralKeysTimedCallback,
    TimedCallback,
)
from benchmarks.constructs.construct import Construct, K, Key, Style, Tally
from benchmarks.constructs.purgatory_waits import (
    PurgatoryCallback,
    PurgatorySeveralKeysCallback,
    PurgatorySeveralKeysTask,
    PurgatoryTask,
)

ONE_KEY_CALLBACK: tuple[type[Construct[Key]], ...] = (
    PurgatoryCallback,
    FutureCallback,
    TimedCallback,
    BareCallback,
)
ONE_KEY_AWAITED: tuple[type[Construct[Key]], ...] = (
    PurgatoryTask,
    CallLaterFuture,
    TimeoutFuture,
    WaitForEvent,
    MoveOnAfterEvent,
)
SEVERAL_KEYS_CALLBACK: tuple[type[Construct[tuple[Key, ...]]], ...] = (
    PurgatorySeveralKeysCallback,
    SeveralKeysTimedCallback,
)
SEVERAL_KEYS_AWAITED: tuple[type[Construct[tuple[Key, ...]]], ...] = (
    PurgatorySeveralKeysTask,
    SharedFuture,
    WaitFirstOfEvents,
)

__all__ = [
    "ONE_KEY_AWAITED",
    "ONE_KEY_CALLBACK",
    "SEVERAL_KEYS_AWAITED",
    "SEVERAL_KEYS_CALLBACK",
    "Construct",
    "K",
    "Key",
    "Style",
    "Tally",
]
