"""The request purgatory of Kafka 0.8: what it does, and what it holds on to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable, Sequence

import pytest

from benchmarks.designs.kafka_08 import DelayedRequest, RequestPurgatory
from purgatory.testing import VirtualTimeLoop


class Request(DelayedRequest):
    """Satisfied once it is `ready`, or at the `ready_at`-th check."""

    __slots__ = ("checks", "expired_at", "ready", "ready_at")

    def __init__(self, keys: Sequence[Hashable], delay: float = 30.0, *, ready_at: int = 0) -> None:
        super().__init__(keys, delay)
        self.ready = False
        self.ready_at = ready_at
        self.checks = 0
        self.expired_at: list[float] = []


class Requests(RequestPurgatory[Request]):
    def check_satisfied(self, request: Request) -> bool:
        request.checks += 1
        return request.ready or request.checks == request.ready_at

    def expire(self, request: Request) -> None:
        request.expired_at.append(self.loop.time())


def parked(purgatory: Requests, count: int, keys: Sequence[Hashable], delay: float = 30.0) -> list[Request]:
    requests = [Request(keys, delay) for _ in range(count)]
    for request in requests:
        assert not purgatory.check_and_maybe_watch(request)
    return requests


def satisfied(requests: Sequence[Request]) -> None:
    for request in requests:
        request.ready = True


async def test_a_request_that_is_satisfied_already_is_not_watched(virtual_time: VirtualTimeLoop) -> None:
    with Requests(virtual_time) as purgatory:
        request = Request(["a"], ready_at=1)
        assert purgatory.check_and_maybe_watch(request)
        assert request.satisfied
        assert (purgatory.watched(), purgatory.delayed()) == (0, 0)
        # Only the first to satisfy it may answer it.
        request.ready = True
        assert not purgatory.check_and_maybe_watch(request)


async def test_a_request_without_keys_is_satisfied(virtual_time: VirtualTimeLoop) -> None:
    with Requests(virtual_time) as purgatory:
        assert purgatory.check_and_maybe_watch(Request([]))


async def test_it_is_checked_again_once_it_is_watched(virtual_time: VirtualTimeLoop) -> None:
    with Requests(virtual_time) as purgatory:
        request = Request(["a", "b", "c"], ready_at=2)
        assert purgatory.check_and_maybe_watch(request)
        # It stays on the lists, but has no timeout.
        assert (purgatory.watched(), purgatory.delayed()) == (3, 0)


async def test_it_is_watched_no_further_once_somebody_else_has_satisfied_it(
    virtual_time: VirtualTimeLoop,
) -> None:
    class Raced(Requests):
        def check_satisfied(self, request: Request) -> bool:
            request.satisfied = True
            return False

    with Raced(virtual_time) as purgatory:
        assert not purgatory.check_and_maybe_watch(Request(["a", "b"]))
        assert (purgatory.watched(), purgatory.delayed()) == (0, 0)


async def test_update_collects_the_satisfied_in_order_and_each_once(virtual_time: VirtualTimeLoop) -> None:
    with Requests(virtual_time) as purgatory:
        first, second, third = parked(purgatory, 3, ["a", "b"])
        assert purgatory.update("a") == []
        assert purgatory.update("nobody watches it") == []
        satisfied([third, first])
        assert purgatory.update("a") == [first, third]
        assert purgatory.update("a") == []
        assert purgatory.update("b") == []
        assert not second.satisfied


async def test_a_request_expires_once_and_only_when_it_was_not_satisfied(
    virtual_time: VirtualTimeLoop,
) -> None:
    with Requests(virtual_time) as purgatory:
        (late,) = parked(purgatory, 1, ["a"], 5.0)
        soon, answered = parked(purgatory, 2, ["b"], 0.0305)
        answered.ready = True
        soon.ready_at = 1
        assert purgatory.update("b") == [answered]
        await asyncio.sleep(10.0)
        assert late.expired_at == [pytest.approx(5.0)]
        # To the millisecond.
        assert soon.expired_at == [pytest.approx(0.031)]
        assert answered.expired_at == []
        assert purgatory.update("a") == []


async def test_a_satisfied_request_stays_on_its_other_lists_and_in_the_queue(
    virtual_time: VirtualTimeLoop,
) -> None:
    with Requests(virtual_time) as purgatory:
        requests = parked(purgatory, 100, ["a", "b", "c"])
        satisfied(requests)
        assert len(purgatory.update("a")) == 100
        assert (purgatory.watched(), purgatory.delayed()) == (200, 100)
        # Until somebody happens to walk over it, ...
        assert purgatory.update("b") == []
        assert (purgatory.watched(), purgatory.delayed()) == (100, 100)
        # ... or the time comes when it would have expired.
        await asyncio.sleep(31.0)
        assert (purgatory.watched(), purgatory.delayed()) == (100, 0)
        assert purgatory.purges == 0


async def test_a_purge_comes_once_so_many_entries_are_held_and_walks_over_all_of_them(
    virtual_time: VirtualTimeLoop,
) -> None:
    with Requests(virtual_time) as purgatory:
        alive = parked(purgatory, 100, ["d", "e"])
        satisfied(parked(purgatory, 266, ["a", "b", "c"]))
        purgatory.update("a")
        satisfied(parked(purgatory, 267, ["b"]))
        await asyncio.sleep(1.0)
        assert (purgatory.purges, purgatory.watched(), purgatory.delayed()) == (0, 999, 633)
        satisfied(parked(purgatory, 1, ["c"]))
        await asyncio.sleep(0.2)
        # The queue is not that long yet.
        assert (purgatory.purges, purgatory.watched(), purgatory.delayed()) == (1, 468, 634)
        assert purgatory.walked == 1_000
        satisfied(parked(purgatory, 366, ["f"]))
        await asyncio.sleep(0.2)
        assert (purgatory.purges, purgatory.delayed()) == (2, 100 + 268 + 366)
        satisfied(alive)
        assert purgatory.update("d") == alive


async def test_with_so_many_pending_it_purges_whenever_the_reaper_wakes_for_nothing(
    virtual_time: VirtualTimeLoop,
) -> None:
    with Requests(virtual_time) as purgatory:
        parked(purgatory, 1_000, ["a", "b"])
        await asyncio.sleep(10.1)
        assert purgatory.wakeups == 50
        assert purgatory.walked == 50 * (2_000 + 1_000)
        assert (purgatory.watched(), purgatory.delayed()) == (2_000, 1_000)


async def test_what_has_expired_is_purged_at_once(virtual_time: VirtualTimeLoop) -> None:
    with Requests(virtual_time, purge_interval=22) as purgatory:
        requests = parked(purgatory, 11, ["a", "b"], 0.05)
        await asyncio.sleep(0.051)
        assert [len(request.expired_at) for request in requests] == [1] * 11
        assert (purgatory.purges, purgatory.watched(), purgatory.delayed()) == (1, 0, 0)


async def test_what_a_purge_leaves_in_the_queue_expires_at_its_time(virtual_time: VirtualTimeLoop) -> None:
    choice = random.Random(1)
    delays = [choice.randrange(1_000, 10_000) / 1_000 for _ in range(1_000)]
    with Requests(virtual_time) as purgatory:
        requests = [parked(purgatory, 1, [number % 2], delay)[0] for number, delay in enumerate(delays)]
        # Half of them.
        satisfied(requests[::2])
        assert purgatory.update(0) == requests[::2]
        await asyncio.sleep(0.5)
        assert (purgatory.watched(), purgatory.delayed()) == (500, 500)
        await asyncio.sleep(20.0)
        for request, delay in zip(requests[1::2], delays[1::2], strict=True):
            assert request.expired_at == [pytest.approx(delay)]


async def test_the_reaper_wakes_five_times_a_second_with_nothing_to_do(virtual_time: VirtualTimeLoop) -> None:
    with Requests(virtual_time) as purgatory:
        await asyncio.sleep(10.1)
        assert purgatory.wakeups == 50


async def test_a_request_may_be_parked_when_another_expires(virtual_time: VirtualTimeLoop) -> None:
    class Chained(Requests):
        def expire(self, request: Request) -> None:
            super().expire(request)
            if request.keys == ["a"]:
                self.check_and_maybe_watch(follower)

    follower = Request(["b"], 0.01)
    with Chained(virtual_time) as purgatory:
        parked(purgatory, 1, ["a"], 0.01)
        await asyncio.sleep(1.0)
        assert follower.expired_at == [pytest.approx(0.02)]


async def test_nothing_is_armed_after_close(virtual_time: VirtualTimeLoop) -> None:
    with Requests(virtual_time) as purgatory:
        (request,) = parked(purgatory, 1, ["a"], 0.01)
    await asyncio.sleep(0)
    assert virtual_time.idle_for() is None
    assert request.expired_at == []
