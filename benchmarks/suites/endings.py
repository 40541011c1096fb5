"""Waits that end in other ways than by a check: by time, with their task, and by one value for all.

The twins are written by hand with `call_later`. Some do less than an operation, and their names say so.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from benchmarks.designs import tasks
from benchmarks.designs.alternative import (
    MOST_TASKS,
    TIMEOUT,
    TURNS_TO_COMPLETE,
    TURNS_TO_PARK,
    Alternative,
    Tally,
    TaskAlternative,
    signals,
    targets,
)
from benchmarks.designs.purgatory_waits import PurgatoryCallback, PurgatoryTask
from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.event_loop import CollectorSetting, run, turns
from purgatory import DelayedOperation, DelayedValue

NOTE = f"Processor time. Timeout {TIMEOUT:.0f} s, except 'no timeout'. Collector as the README advises."
KEY = 1


class Later(DelayedOperation[None]):
    """Its condition holds when it has been woken so many times."""

    __slots__ = ("delay", "tally", "wakes")

    def __init__(self, tally: Tally, delay: float, wakes: int) -> None:
        super().__init__(TIMEOUT)
        self.tally, self.delay, self.wakes = tally, delay, wakes

    def try_complete(self) -> bool:
        if not self.wakes:
            return self.force_complete()
        self.wakes -= 1
        self.try_again_in(self.delay)
        return False

    def on_complete(self) -> None:
        self.tally.completed += 1


class TryAgainIn(PurgatoryCallback):
    name = "purgatory's try_again_in"

    def park_each(self, delays: Sequence[float], wakes: int) -> None:
        for request, delay in enumerate(delays):
            self.watch(Later(self.tally, delay, wakes), (request,))


class CallLater(Alternative):
    name = "call_later again, and one for the timeout"
    timed = True

    def park_each(self, delays: Sequence[float], wakes: int) -> None:
        for delay in delays:
            timeout = self.loop.call_later(TIMEOUT, self.tally.expire, 0) if self.timed else None
            self._look(delay, wakes, timeout)

    def _look(self, delay: float, wakes: int, timeout: asyncio.TimerHandle | None) -> None:
        if wakes:
            self.loop.call_later(delay, self._look, delay, wakes - 1, timeout)
            return
        self.tally.completed += 1
        if timeout is not None:
            timeout.cancel()


class UntimedCallLater(CallLater):
    name = "call_later again, no timeout"
    timed = False


class Sleep(Alternative):
    name = "asyncio.sleep in a task, no timeout"
    most = MOST_TASKS

    def park_each(self, delays: Sequence[float], wakes: int) -> None:
        # The loop's timers keep the tasks alive.
        for delay in delays:
            self.loop.create_task(self._sleep(delay, wakes))

    async def _sleep(self, delay: float, wakes: int) -> None:
        for _ in range(wakes):
            await asyncio.sleep(delay)
        self.tally.completed += 1


@benchmark("by-time", "conditions that come true by time", (100_000, 10_000), time_limit=40.0)
def by_time(setting: Setting) -> Parts:
    yield Table(
        "n waits that are woken by time, and then complete: microseconds each",
        setting.growth("us"),
        f"{NOTE} Each wait has a time of its own, and all are spread evenly over {setting.seconds:g} s. "
        "Includes parking, and the loop's wake-ups, which count for more where n is small.",
    )
    for section, wakes in (("woken once", 1), ("woken five times", 5)):
        measured = partial(run, setting.loop, _woken, setting.seconds, wakes)
        yield from setting.sized(section, (TryAgainIn, CallLater, UntimedCallLater, Sleep), measured, ["us"])


async def _woken(seconds: float, wakes: int, alternative_type: Callable[[Tally], Any], size: int) -> Sample:
    tally = Tally()
    delays = [seconds * number / size / wakes for number in range(1, size + 1)]
    async with alternative_type(tally) as alternative:
        with CollectorSetting.ADVISED.applied():
            start = time.process_time()
            alternative.park_each(delays, wakes)
            while tally.completed < size:  # noqa: ASYNC110  # an event would cost each wait
                await asyncio.sleep(0.01)
            spent = time.process_time() - start
    tally.expect(alternative, completed=size)
    return {"us": spent / size * 1e6}


WITHDRAWN: tuple[type[TaskAlternative], ...] = (
    PurgatoryTask, tasks.SharedFuture, tasks.CallLaterFuture, tasks.TimeoutFuture, tasks.WaitForEvent,
)  # fmt: skip


@benchmark("withdrawn", "waits whose tasks are cancelled", (100_000, 10_000))
def withdrawn(setting: Setting) -> Parts:
    headline = setting.sizes[0]
    yield Table(
        "n tasks wait and are cancelled: microseconds each",
        setting.growth("us"),
        f"{NOTE} 'Future + call_later' and 'asyncio.timeout' stay on the key until the signal.",
    )
    yield Table(
        f"The two halves, n = {headline:,}: microseconds each",
        spreads(headline, cancel_us="cancel") + medians(headline, park_us="park"),
    )
    for section, signalled in (("cancelled", False), ("cancelled, and passed over by a signal", True)):
        measured = partial(run, setting.loop, _withdrawn, signalled)
        yield from setting.sized(
            section, WITHDRAWN, measured, ["us"], at_least=setting.times // 5, interpreted=False
        )


async def _withdrawn(signalled: bool, alternative_type: type[TaskAlternative], size: int) -> Sample:
    tally = Tally()
    timeouts, keys, watched = repeat(TIMEOUT), signals(size, 1), targets(size, 1)
    async with alternative_type(tally) as alternative:
        create_task, wait = alternative.loop.create_task, alternative.wait
        with CollectorSetting.ADVISED.applied():
            start = time.process_time()
            waiting = [create_task(wait(request, target, timeouts)) for request, target in enumerate(watched)]
            await turns(TURNS_TO_PARK)
            parked = time.process_time()
            for task in waiting:
                task.cancel()
            if signalled:
                tally.ready = True
                alternative.signal(keys)
            await turns(TURNS_TO_COMPLETE)
            end = time.process_time()
    tally.expect(alternative, completed=0)
    if tally.parked != size or not all(task.cancelled() for task in waiting):
        raise AssertionError(f"{alternative.name}: not all of {size} waits were parked and cancelled")
    cancel_us, park_us = (end - parked) / size * 1e6, (parked - start) / size * 1e6
    return {"us": park_us + cancel_us, "cancel_us": cancel_us, "park_us": park_us}


class CompleteForKey(PurgatoryCallback):
    name = "purgatory's complete_for_key"

    def waits(self, size: int) -> Sequence[Awaitable[int]]:
        watch = self.purgatory.try_complete_else_watch
        return [watch(DelayedValue[int](TIMEOUT), (KEY,)) for _ in range(size)]

    def hand(self, value: int) -> None:
        self.purgatory.complete_for_key(KEY, value)


class CompleteEach(CompleteForKey):
    name = "purgatory, a loop of complete()"

    def hand(self, value: int) -> None:
        for operation in self.purgatory.operations(KEY):
            operation.complete(value)


class Futures(Alternative):
    name = "set_result() and cancelled call_later"
    timed = True

    def waits(self, size: int) -> Sequence[Awaitable[int]]:
        futures: list[asyncio.Future[int]] = [self.loop.create_future() for _ in range(size)]
        expire = self.tally.expire
        self._timers = [self.loop.call_later(TIMEOUT, expire, 0) for _ in futures] if self.timed else []
        self._futures = futures
        return futures

    def hand(self, value: int) -> None:
        for future in self._futures:
            if not future.done():
                future.set_result(value)
        for timer in self._timers:
            timer.cancel()


class UntimedFutures(Futures):
    name = "set_result(), no timeout"
    timed = False


@benchmark("one-value", "a value for all that wait for a key", (10_000,), (10_000, 100_000))
def one_value(setting: Setting) -> Parts:
    yield Table("n waits for a key get one value: microseconds each", setting.growth("us"), NOTE)
    for section, awaited in (("nobody awaits them", False), ("a task awaits each", True)):
        measured = partial(run, setting.loop, _handed, awaited)
        yield from setting.sized(
            section,
            (CompleteForKey, CompleteEach, Futures, UntimedFutures),
            measured,
            ["us"],
            at_least=setting.times,
        )


async def _handed(awaited: bool, alternative_type: Callable[[Tally], Any], size: int) -> Sample:
    async with alternative_type(Tally()) as alternative:
        with CollectorSetting.ADVISED.applied():
            waits = alternative.waits(size)
            if awaited:
                waits = [alternative.loop.create_task(_result(each)) for each in waits]
            await turns(TURNS_TO_PARK)
            start = time.process_time()
            alternative.hand(1)
            await turns(TURNS_TO_COMPLETE)
            spent = time.process_time() - start
    if [each.result() for each in waits] != [1] * size:
        raise AssertionError(f"{alternative.name}: not all of {size} waits got the value")
    return {"us": spent / size * 1e6}


async def _result(wait: Awaitable[int]) -> int:
    return await wait
