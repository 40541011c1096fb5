"""The budget of an operation, counted and not timed: bytes, objects, look-ups, calls, moves, wake-ups.

Counts are the same on any machine and under any load, so a test that fails here shows a change of the code.
Each budget is the present count, with a little room where interpreters differ. Before you raise one, look
at the effect in `benchmarks`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextvars import Context
from types import FrameType
from typing import TypeVarTuple

import pytest

from purgatory import COMPILED, AsyncDelayedOperation, DelayedOperation, Purgatory, TimerTask, TimingWheel
from purgatory._core.watch_list import CHUNK_LENGTH
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.core.executed import executed

Ts = TypeVarTuple("Ts")

MANY = 1_000
TIMEOUT = 30.0


class Ready(DelayedOperation[None]):
    """The smallest operation that a user can write."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        super().__init__(TIMEOUT)
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        pass


class Slotted(DelayedOperation[None]):
    """An operation with three fields, all named in `__slots__`."""

    __slots__ = ("log", "offset", "ready")

    def __init__(self) -> None:
        super().__init__(TIMEOUT)
        self.ready, self.log, self.offset = False, None, 0

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()


class Plain(DelayedOperation[None]):
    """The same without `__slots__`, as most users write it."""

    def __init__(self) -> None:
        super().__init__(TIMEOUT)
        self.ready, self.log, self.offset = False, None, 0

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()


class Looking(AsyncDelayedOperation[None]):
    """An operation with an async condition, and the field of `Ready`."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        super().__init__(TIMEOUT)
        self.ready = False

    async def condition(self) -> None:
        pass


class StillLooking(Looking):
    """The same during an evaluation, which waits for a future."""

    __slots__ = ()

    async def condition(self) -> None:
        await asyncio.get_running_loop().create_future()


class CountedKey:
    """Counts how often it is hashed and compared. Each hash is a look-up in a dict or a set."""

    hashed = compared = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        CountedKey.hashed += 1
        return self.number

    def __eq__(self, other: object) -> bool:
        CountedKey.compared += 1
        return isinstance(other, CountedKey) and self.number == other.number


def look_ups(act: Callable[..., object], *arguments: object) -> int:
    CountedKey.hashed = CountedKey.compared = 0
    act(*arguments)
    assert CountedKey.compared == 0, "the same object is found by identity"
    return CountedKey.hashed


def a_purgatory() -> Purgatory:
    """A purgatory whose time stands still, with one pending operation that keeps its timer armed."""
    held = ManualClock().purgatory()
    held.try_complete_else_watch(Ready(), ("nobody else's",))
    return held


@pytest.fixture
def held() -> Purgatory:
    return a_purgatory()


@pytest.fixture
def traced(collector_off: None) -> Iterator[Callable[[], int]]:
    """Gives a function that returns the bytes allocated since, by all of Python's allocators."""
    # A tracer, such as that of coverage, creates an object for every frame.
    tracer = sys.gettrace()
    sys.settrace(None)
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    yield lambda: tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    sys.settrace(tracer)


# (watched keys per operation, operations per key) -> bytes of a pending operation with the user's object.
BYTES = {
    (1, 1): 198 if COMPILED else 271,
    (1, 10): 192 if COMPILED else 263,
    (3, 1): 309 if COMPILED else 381,
    (3, 10): 312 if COMPILED else 386,
}


# From Python 3.13 on, only a class whose bases are all written in Python shares the names of its fields.
SHARED_NAMES = sys.version_info < (3, 13)
# The bytes of a pending operation with three fields. Each slot has 8, and `Ready` has one slot.
BYTES_OF_FIELDS = {
    Slotted: BYTES[1, 1] + 2 * 8,
    Plain: (256 if COMPILED else 328) if SHARED_NAMES else (552 if COMPILED else 624),
}


# The bytes that an async condition adds.
BYTES_OF_AN_ASYNC_CONDITION = {Looking: 560, StillLooking: 1_800}

# How often each count is made. The lowest one is right, because other threads may allocate memory meanwhile.
COUNTS = 3


def bytes_of_pending(
    make: Callable[[], DelayedOperation[None]], given: list[tuple[int, ...]], traced: Callable[[], int]
) -> float:
    # All purgatories live until the end, or the interpreter would reuse the memory of one for the next.
    purgatories = [a_purgatory() for _ in range(COUNTS)]
    counts: list[int] = []
    for held in purgatories:
        before = traced()
        for watched in given:
            held.try_complete_else_watch(make(), watched)
        counts.append(traced() - before)
        assert held.statistics().pending == MANY + 1
    return min(counts) / MANY


@pytest.mark.parametrize(("keys", "sharing"), BYTES)
def test_a_pending_operation_stays_within_its_bytes(
    keys: int, sharing: int, traced: Callable[[], int]
) -> None:
    given = [tuple(range(first, first + keys)) for first in range(0, keys * MANY // sharing, keys)] * sharing
    assert bytes_of_pending(Ready, given, traced) <= BYTES[keys, sharing]


@pytest.mark.parametrize("made", BYTES_OF_FIELDS)
def test_a_pending_operation_with_three_fields_stays_within_its_bytes(
    made: type[Slotted | Plain], traced: Callable[[], int]
) -> None:
    assert bytes_of_pending(made, [(key,) for key in range(MANY)], traced) <= BYTES_OF_FIELDS[made]


@pytest.mark.skipif(sys.flags.dev_mode, reason="in debug mode asyncio keeps the stack that made each task")
@pytest.mark.parametrize("made", BYTES_OF_AN_ASYNC_CONDITION)
def test_an_async_condition_stays_within_its_bytes(made: type[Looking], traced: Callable[[], int]) -> None:
    async def bytes_of(make: type[Ready | Looking]) -> float:
        async with Purgatory() as purgatory:
            before = traced()
            for key in range(MANY):
                purgatory.try_complete_else_watch(make(), (key,))
            # All evaluations begin, and those of `Looking` end.
            for _ in range(5):
                await asyncio.sleep(0)
            count = traced() - before
            assert purgatory.statistics().pending == MANY
            await purgatory.aclose(cancel_pending=True)
        return count / MANY

    async def least(make: type[Ready | Looking]) -> float:
        return min([await bytes_of(make) for _ in range(COUNTS)])

    with asyncio.Runner() as runner:
        added = runner.run(least(made)) - runner.run(least(Ready))
    assert added <= BYTES_OF_AN_ASYNC_CONDITION[made]


def test_a_round_trip_stays_within_its_peak_of_bytes(held: Purgatory, traced: Callable[[], int]) -> None:
    keys = (1, 2, 3)

    def round_trip() -> None:
        operation = held.try_complete_else_watch(Ready(), keys)
        operation.ready = True
        held.check_and_complete(2)

    # The first round trip fills the interpreter's free lists.
    round_trip()
    peaks: list[int] = []
    kept: list[int] = []
    for _ in range(COUNTS):
        before = traced()
        tracemalloc.reset_peak()
        round_trip()
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
        kept.append(traced() - before)
    assert min(peaks) <= 320
    # The remaining bytes are those of the counts themselves.
    assert min(kept) < 100


@pytest.mark.parametrize("keys", [1, 3])
def test_a_pending_operation_adds_one_object_for_the_collector(
    held: Purgatory, keys: int, collector_off: None
) -> None:
    given = [tuple(range(first, first + keys)) for first in range(0, keys * MANY, keys)]
    # The first collection stops tracking tuples that hold only numbers.
    gc.collect()
    before = len(gc.get_objects())
    for watched in given:
        held.try_complete_else_watch(Ready(), watched)
    # The user's objects, and a few of the wheel, which has grown meanwhile.
    assert len(gc.get_objects()) - before <= MANY + 20


async def test_an_awaiting_task_stays_within_its_number_of_objects(
    virtual_time: VirtualTimeLoop, collector_off: None
) -> None:
    async def wait(purgatory: Purgatory) -> None:
        await purgatory.try_complete_else_watch(Ready(), ("key",))

    async with Purgatory() as purgatory:
        before = len(gc.get_objects())
        tasks = {asyncio.create_task(wait(purgatory)) for _ in range(MANY)}
        await asyncio.sleep(0)
        assert purgatory.statistics().pending == MANY
        made = len(gc.get_objects()) - before
        purgatory.cancel_for_key("key")
        await asyncio.gather(*tasks, return_exceptions=True)
    # Asyncio makes five: the task, its weak reference, its context, its wake-up method and the coroutine.
    # Ours are the operation, the iterator of `await`, its future, and two for each chunk.
    assert made <= (5 + 3 + 2 / CHUNK_LENGTH) * MANY + 50


@pytest.mark.parametrize("keys", [1, 3])
def test_parking_and_completing_stay_within_their_look_ups_of_a_key(held: Purgatory, keys: int) -> None:
    watched = tuple(CountedKey(number) for number in range(keys))
    # Two full chunks and a half.
    operations = [Ready() for _ in range(5 * CHUNK_LENGTH // 2)]
    parking = [look_ups(held.try_complete_else_watch, operation, watched) for operation in operations]
    # The key is hashed before anything changes, to refuse an unhashable one. Then it is looked up once. The
    # second operation on a key turns its entry into a list.
    assert parking[:1] + parking[2:] == [2 * keys] * (len(operations) - 1)
    assert parking[1] == 3 * keys

    leaving = [look_ups(operation.force_complete) for operation in operations]
    # The first operation looks whether it is still the only one. The last one removes the key, after a look
    # whether the entry is its own.
    assert [looks for looks in leaving if looks] == [keys, 2 * keys]
    assert look_ups(held.check_and_complete, watched[0]) == 1

    alone = held.try_complete_else_watch(Ready(), watched)
    assert look_ups(alone.force_complete) == 2 * keys


def test_a_round_trip_calls_each_hook_of_the_user_no_more_than_needed(held: Purgatory) -> None:
    calls = calls_of("try_complete", "on_complete", "on_expiration", "__init__")
    operation = Ready()
    with calls as seen:
        held.try_complete_else_watch(operation, (1, 2, 3))
        operation.ready = True
        held.check_and_complete(2)
        held.check_and_complete(1)
    assert operation.done
    assert seen == {"try_complete": 2, "on_complete": 1}


@pytest.mark.skipif(COMPILED, reason="a compiled core has no bytecode to count")
@pytest.mark.parametrize(("keys", "park", "complete"), [((1,), 440, 548), ((1, 2, 3), 583, 596)])
def test_parking_and_completing_stay_within_their_bytecodes(
    held: Purgatory, keys: tuple[int, ...], park: int, complete: int
) -> None:
    operation = Ready()
    assert executed("opcode", lambda: held.try_complete_else_watch(operation, keys)) <= park
    operation.ready = True
    assert executed("opcode", lambda: held.check_and_complete(keys[0])) <= complete
    assert operation.done


@pytest.mark.skipif(COMPILED, reason="a compiled core has no bytecode to count")
def test_bytecodes_do_not_grow_with_the_number_of_pending_operations(held: Purgatory) -> None:
    def round_trip(number: int) -> int:
        operation = Ready()
        parking = executed("opcode", lambda: held.try_complete_else_watch(operation, (number, "shared")))
        return parking + executed("opcode", operation.force_complete)

    held.try_complete_else_watch(Ready(), ("shared",))
    with_one = round_trip(0)
    for number in range(1, 20 * MANY):
        held.try_complete_else_watch(Ready(), (number, "shared"))
    # At most the search in one chunk is added.
    assert round_trip(20 * MANY) <= with_one + CHUNK_LENGTH * 25


@pytest.mark.skipif(COMPILED, reason="a compiled core has no bytecode to count")
def test_bytecodes_of_two_operations_with_many_common_keys_grow_linearly() -> None:
    def second(keys: int) -> int:
        held = a_purgatory()
        watched = tuple(range(keys))
        held.try_complete_else_watch(Ready(), watched)
        operation = Ready()
        parking = executed("opcode", lambda: held.try_complete_else_watch(operation, watched))
        return parking + executed("opcode", operation.force_complete)

    assert second(2 * MANY) <= 2.1 * second(MANY)


def test_an_expiring_task_moves_at_most_once_per_level() -> None:
    for wheel_size, ahead in ((2, 1_000), (20, 7_999), (32, 30_000)):
        wheel = TimingWheel(wheel_size)
        for expiration in range(1, ahead + 1):
            wheel.add(TimerTask(), expiration)
        levels, moved, popped = wheel.levels, 0, 0
        while wheel.reach(ahead):
            moved += wheel.sink(ahead)
            while wheel.pop() is not None:
                popped += 1
        assert popped == ahead
        assert moved <= (levels - 1) * ahead


def test_an_operation_that_completes_early_never_moves() -> None:
    clock = ManualClock()
    held = clock.purgatory()
    levels = []
    for number in range(100):
        operation = held.try_complete_else_watch(Ready(), ("key",))
        levels.append(held.timer.wheel.locate(operation))
        operation.force_complete()
        clock.advance(1.0 + number / 1_000)
    assert {level for level, _ in levels} == {held.timer.wheel.levels - 1}


class CountingLoop(VirtualTimeLoop):
    """Counts the calls of `time` and `call_at`."""

    def __init__(self) -> None:
        self.times = self.timers = 0
        super().__init__()

    def time(self) -> float:
        self.times += 1
        return super().time()

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(when, callback, *args, context=context)


def test_parking_reads_the_time_once_and_arms_no_timer() -> None:
    async def park() -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, CountingLoop)
        async with Purgatory(debug=False) as purgatory:
            # The first operation finds that a new tick has begun, and arms the timer.
            purgatory.try_complete_else_watch(Ready(), ("key",))
            loop.times = loop.timers = 0
            for _ in range(MANY):
                purgatory.try_complete_else_watch(Ready(), ("key",))
            asked = loop.times, loop.timers
            purgatory.cancel_for_key("key")
            return asked

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        assert runner.run(park()) == (MANY, 0)


async def test_there_is_one_wakeup_per_slot_in_which_something_expires(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        for number in range(MANY):
            operation = Ready()
            operation.reschedule(0.1 + (number % 10) / 1_000)
            purgatory.try_complete_else_watch(operation, (number,))
        await asyncio.sleep(1)
        statistics = purgatory.statistics()
        assert statistics.expired == MANY
        # One for each of ten ticks, and those that move a slot of a higher level down.
        assert statistics.wakeups <= 10 + 5


async def test_nothing_wakes_the_timer_when_everything_completes_early(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with Purgatory() as purgatory:
        for number in range(MANY):
            purgatory.try_complete_else_watch(Ready(), (number,)).force_complete()
            await asyncio.sleep(0.01)
        assert purgatory.statistics().wakeups == 0


class calls_of:
    """Counts the calls of interpreted functions with these names."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._seen: dict[str, int] = {}

    def __enter__(self) -> dict[str, int]:
        sys.setprofile(self._profile)
        return self._seen

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_name
        # Only those of this module: the interpreted core has functions of the same names.
        if event == "call" and name in self._names and frame.f_globals["__name__"] == __name__:
            self._seen[name] = self._seen.get(name, 0) + 1
