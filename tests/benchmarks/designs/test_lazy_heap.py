"""The lazy heap: tombstones, and what becomes of them."""

from __future__ import annotations

import asyncio
import random

from benchmarks.designs.lazy_heap import LazyHeap
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.designs.recorded import Recorded


async def test_a_cancelled_entry_is_held_until_its_deadline(virtual_time: VirtualTimeLoop) -> None:
    with LazyHeap(virtual_time) as heap:
        entry = Recorded(virtual_time)
        heap.add(entry, 5.0)
        heap.cancel(entry)
        assert (len(heap), heap.tombstones) == (0, 1)
        await asyncio.sleep(4.999)
        assert heap.tombstones == 1
        await asyncio.sleep(0.002)
        assert heap.tombstones == 0
        # A wake-up for nothing.
        assert heap.wakeups == 1


async def test_the_heap_is_rebuilt_when_more_than_half_of_it_are_tombstones(
    virtual_time: VirtualTimeLoop,
) -> None:
    log: list[Recorded] = []
    entries = [Recorded(virtual_time, log) for _ in range(200)]
    with LazyHeap(virtual_time) as heap:
        for number, entry in enumerate(entries):
            heap.add(entry, 1 + number / 1000)
        for entry in entries[:100]:
            heap.cancel(entry)
        assert (heap.compactions, heap.tombstones) == (0, 100)
        heap.cancel(entries[100])
        assert (heap.compactions, heap.tombstones, len(heap)) == (1, 0, 99)
        await asyncio.sleep(2.0)
        assert log == entries[101:]


async def test_what_is_left_after_a_rebuild_expires_in_order(virtual_time: VirtualTimeLoop) -> None:
    choice = random.Random(1)
    delays = [choice.uniform(1, 10) for _ in range(1_000)]
    log: list[Recorded] = []
    entries = {Recorded(virtual_time, log): delay for delay in delays}
    with LazyHeap(virtual_time) as heap:
        for entry, delay in entries.items():
            heap.add(entry, delay)
        for entry in choice.sample(list(entries), 501):
            heap.cancel(entry)
            del entries[entry]
        assert heap.compactions == 1
        await asyncio.sleep(20.0)
    assert log == sorted(entries, key=entries.__getitem__)


async def test_renewed_entries_leave_tombstones_that_are_cleared_in_the_same_way(
    virtual_time: VirtualTimeLoop,
) -> None:
    entries = [Recorded(virtual_time) for _ in range(200)]
    with LazyHeap(virtual_time) as heap:
        for entry in entries:
            heap.add(entry, 1.0)
        for _ in range(10):
            await asyncio.sleep(0.5)
            for entry in entries:
                heap.cancel(entry)
                heap.add(entry, 1.0)
            assert len(heap) == 200
            assert heap.tombstones <= 201
        assert heap.compactions >= 4
        await asyncio.sleep(2.0)
        assert [entry.expired_at for entry in entries] == [[6.0]] * 200


async def test_small_heaps_and_those_told_not_to_are_not_rebuilt(virtual_time: VirtualTimeLoop) -> None:
    for heap, count in ((LazyHeap(virtual_time), 100), (LazyHeap(virtual_time, compact=False), 500)):
        with heap:
            entries = [Recorded(virtual_time) for _ in range(count)]
            for entry in entries:
                heap.add(entry, 1.0)
            for entry in entries:
                heap.cancel(entry)
            assert (heap.compactions, heap.tombstones) == (0, count)


async def test_one_wake_up_takes_all_that_is_due(virtual_time: VirtualTimeLoop) -> None:
    with LazyHeap(virtual_time) as heap:
        for _ in range(1000):
            heap.add(Recorded(virtual_time), 1.0)
        await asyncio.sleep(2.0)
        assert (len(heap), heap.wakeups) == (0, 1)
