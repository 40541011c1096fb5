"""The ways to wait that are compared, purgatory first in each list: the others are set in relation to it."""

from benchmarks.constructs.anyio_tasks import MoveOnAfterEvent
from benchmarks.constructs.asyncio_tasks import (
    BareFuture,
    CallLaterFuture,
    SharedFuture,
    TimeoutFuture,
    WaitFirstOfEvents,
    WaitForEvent,
)
from benchmarks.constructs.asyncio_timeouts import AsyncioTimeouts
from benchmarks.constructs.callbacks import BareCallback, FutureCallback, TimedCallback
from benchmarks.constructs.construct import (
    TIMEOUT,
    Construct,
    Key,
    RoundTripConstruct,
    Style,
    Tally,
    TaskConstruct,
)
from benchmarks.constructs.older_designs import (
    DictAndCallAt,
    DictAndLazyHeap,
    DictAndTickerWheel,
    Kafka08,
    KafkaToday,
)
from benchmarks.constructs.purgatory_timeouts import PurgatoryTimeouts
from benchmarks.constructs.purgatory_waits import OperationsAlone, PurgatoryCallback, PurgatoryTask
from benchmarks.constructs.several_keys_callbacks import SeveralKeysTimedCallback
from benchmarks.constructs.timer_construct import TimerConstruct
from benchmarks.constructs.timers import TIMERS

KAFKAS: tuple[type[RoundTripConstruct], ...] = (KafkaToday, Kafka08)
# The one over call_at is what the plain callbacks are, too, with a little less to do for them.
OLDER_DESIGNS: tuple[type[RoundTripConstruct], ...] = (*KAFKAS, DictAndLazyHeap, DictAndTickerWheel)

ONE_KEY_CALLBACK: tuple[type[Construct], ...] = (
    PurgatoryCallback,
    FutureCallback,
    TimedCallback,
    BareCallback,
    OperationsAlone,
    *OLDER_DESIGNS,
)
ONE_KEY_AWAITED: tuple[type[Construct], ...] = (
    PurgatoryTask,
    CallLaterFuture,
    TimeoutFuture,
    WaitForEvent,
    MoveOnAfterEvent,
    BareFuture,
)
SEVERAL_KEYS_CALLBACK: tuple[type[Construct], ...] = (
    PurgatoryCallback,
    SeveralKeysTimedCallback,
    *OLDER_DESIGNS,
)
SEVERAL_KEYS_AWAITED: tuple[type[Construct], ...] = (
    PurgatoryTask,
    SharedFuture,
    WaitFirstOfEvents,
    BareFuture,
)
ROUND_TRIP: tuple[type[RoundTripConstruct], ...] = (
    PurgatoryCallback,
    SeveralKeysTimedCallback,
    *OLDER_DESIGNS,
)
# Those that look at a condition before they complete anything.
CONDITIONAL: tuple[type[Construct], ...] = (PurgatoryCallback, *KAFKAS, DictAndCallAt)
# What keeps sessions alive.
RENEWABLE: tuple[type[TimerConstruct], ...] = (PurgatoryTimeouts, *TIMERS, AsyncioTimeouts)

__all__ = [
    "CONDITIONAL",
    "KAFKAS",
    "OLDER_DESIGNS",
    "ONE_KEY_AWAITED",
    "ONE_KEY_CALLBACK",
    "RENEWABLE",
    "ROUND_TRIP",
    "SEVERAL_KEYS_AWAITED",
    "SEVERAL_KEYS_CALLBACK",
    "TIMEOUT",
    "TIMERS",
    "Construct",
    "Key",
    "RoundTripConstruct",
    "Style",
    "Tally",
    "TaskConstruct",
    "TimerConstruct",
]
