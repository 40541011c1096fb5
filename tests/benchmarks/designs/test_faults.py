"""The known costs of the simpler designs: tombstones, wake-ups for nothing, scans of entries rounds away."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.designs.alternative import Tally
from benchmarks.designs.callbacks import DictAndCallAt, Waiter
from benchmarks.designs.timers import LazyHeap, TickerWheel
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.designs.recorded import Recorded


async def test_a_lazy_heap_keeps_a_cancelled_entry_until_its_deadline(virtual_time: VirtualTimeLoop) -> None:
    async with LazyHeap(Tally()) as heap:
        entry = Recorded(virtual_time)
        heap.add(entry, 5.0)
        heap.cancel(entry)
        await asyncio.sleep(4.999)
        assert (len(heap), heap.tombstones) == (0, 1)
        await asyncio.sleep(0.002)
        # A wake-up for nothing.
        assert (heap.tombstones, heap.wakeups) == (0, 1)


async def test_a_lazy_heap_is_rebuilt_when_more_than_half_of_it_are_tombstones(
    virtual_time: VirtualTimeLoop,
) -> None:
    log: list[Recorded] = []
    entries = [Recorded(virtual_time, log) for _ in range(200)]
    async with LazyHeap(Tally()) as heap:
        for number, entry in enumerate(entries):
            heap.add(entry, 1 + number / 1000)
        for entry in entries[:100]:
            heap.cancel(entry)
        assert heap.tombstones == 100
        heap.cancel(entries[100])
        assert (heap.tombstones, len(heap)) == (0, 99)
        await asyncio.sleep(2.0)
        assert log == entries[101:]


async def test_a_ticker_wheel_wakes_at_every_tick_with_nothing_in_it(virtual_time: VirtualTimeLoop) -> None:
    async with TickerWheel(Tally()) as wheel:
        await asyncio.sleep(1.0005)
        assert (wheel.wakeups, wheel.visited) == (1000, 0)


async def test_a_ticker_wheel_scans_a_slot_in_every_round(virtual_time: VirtualTimeLoop) -> None:
    async with TickerWheel(Tally(), wheel_size=10) as wheel:
        for _ in range(50):
            wheel.add(Recorded(virtual_time), 1.0)
        await asyncio.sleep(0.9955)
        assert (len(wheel), wheel.visited) == (50, 50 * 99)
        await asyncio.sleep(0.01)
        assert (len(wheel), wheel.visited) == (0, 50 * 100)


async def test_whatever_ends_a_wait_in_a_callback_dict_takes_it_off_all_its_keys(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with DictAndCallAt(Tally()) as callbacks:
        waiters = [Waiter(request, Tally()) for request in range(3)]
        for waiter in waiters:
            callbacks.watch(waiter, ("a", "b"), 1.0)
        waiters[1].tally.ready = True
        callbacks.check("b")
        callbacks.check("nobody watches it")
        assert (callbacks.held, len(callbacks.timer)) == (4, 2)
        await asyncio.sleep(2.0)
        outcomes = [(waiter.tally.completed, waiter.tally.expired) for waiter in waiters]
        assert outcomes == [(0, 1), (1, 0), (0, 1)]
        assert (callbacks.held, len(callbacks.timer)) == (0, 0)
    assert virtual_time.time() == pytest.approx(2.0)
