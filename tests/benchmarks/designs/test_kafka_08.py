"""The request purgatory of Kafka 0.8: its behaviour, and the entries that it keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence

import pytest

from benchmarks.designs import kafka_08
from benchmarks.designs.alternative import Tally
from benchmarks.designs.kafka_08 import DelayedRequest, Kafka08
from purgatory.testing import VirtualTimeLoop


class Request(DelayedRequest):
    """Satisfied once it is `ready`, or at the `ready_at`-th check."""

    __slots__ = ("checks", "expired_at", "loop", "ready", "ready_at")

    def __init__(self, delay: float = 30.0, *, ready_at: int = 0) -> None:
        super().__init__(delay, 0, Tally())
        self.loop = asyncio.get_running_loop()
        self.ready = False
        self.ready_at = ready_at
        self.checks = 0
        self.expired_at: list[float] = []

    def check_satisfied(self) -> bool:
        self.checks += 1
        return self.ready or self.checks == self.ready_at

    def expire(self) -> None:
        self.expired_at.append(self.loop.time())


def parked(purgatory: Kafka08, count: int, keys: Sequence[Hashable], delay: float = 30.0) -> list[Request]:
    requests = [Request(delay) for _ in range(count)]
    for request in requests:
        assert not purgatory.watch(request, keys)
    return requests


def satisfied(requests: Sequence[Request]) -> None:
    for request in requests:
        request.ready = True


async def test_a_request_that_is_satisfied_already_is_not_watched(virtual_time: VirtualTimeLoop) -> None:
    async with Kafka08(Tally()) as purgatory:
        request = Request(ready_at=1)
        assert purgatory.watch(request, ["a"])
        assert request.satisfied
        assert (purgatory.held, len(purgatory.queue)) == (0, 0)
        # Only the first to satisfy it may answer it.
        request.ready = True
        assert not purgatory.watch(request, ["a"])


async def test_a_check_collects_the_satisfied_in_order_and_each_once(virtual_time: VirtualTimeLoop) -> None:
    async with Kafka08(Tally()) as purgatory:
        first, second, third = parked(purgatory, 3, ["a", "b"])
        assert purgatory.check("a") == []
        assert purgatory.check("nobody watches it") == []
        satisfied([third, first])
        assert purgatory.check("a") == [first, third]
        assert purgatory.check("a") == []
        assert purgatory.check("b") == []
        assert not second.satisfied


async def test_a_request_expires_once_and_only_when_it_was_not_satisfied(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with Kafka08(Tally()) as purgatory:
        (late,) = parked(purgatory, 1, ["a"], 5.0)
        soon, answered = parked(purgatory, 2, ["b"], 0.0305)
        answered.ready = True
        soon.ready_at = 1
        assert purgatory.check("b") == [answered]
        await asyncio.sleep(10.0)
        assert late.expired_at == [pytest.approx(5.0)]
        # To the millisecond.
        assert soon.expired_at == [pytest.approx(0.031)]
        assert answered.expired_at == []
        assert purgatory.check("a") == []


async def test_a_satisfied_request_stays_on_its_other_lists_and_in_the_queue(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with Kafka08(Tally()) as purgatory:
        requests = parked(purgatory, 100, ["a", "b", "c"])
        satisfied(requests)
        assert len(purgatory.check("a")) == 100
        assert (purgatory.held, len(purgatory.queue)) == (200, 100)
        # Until a check walks over it, ...
        assert purgatory.check("b") == []
        assert (purgatory.held, len(purgatory.queue)) == (100, 100)
        # ... or the time comes when it would have expired.
        await asyncio.sleep(31.0)
        assert (purgatory.held, len(purgatory.queue)) == (100, 0)
        assert purgatory.walked == 0


async def test_with_so_many_pending_it_purges_whenever_the_reaper_wakes_for_nothing(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with Kafka08(Tally()) as purgatory:
        parked(purgatory, 1_000, ["a", "b"])
        await asyncio.sleep(10.1)
        assert purgatory.walked == 50 * (2_000 + 1_000)
        assert (purgatory.held, len(purgatory.queue)) == (2_000, 1_000)


async def test_what_has_expired_is_purged_at_once(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_08, "PURGE_INTERVAL", 22)
    async with Kafka08(Tally()) as purgatory:
        requests = parked(purgatory, 11, ["a", "b"], 0.05)
        await asyncio.sleep(0.051)
        assert [len(request.expired_at) for request in requests] == [1] * 11
        assert (purgatory.walked, purgatory.held, len(purgatory.queue)) == (22, 0, 0)
