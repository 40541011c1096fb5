"""The generator follows its plan."""

from __future__ import annotations

import pytest

from benchmarks.suites.load import generator
from benchmarks.suites.load.generator import BATCH, BEHIND_MS, PAUSE, Generator
from benchmarks.suites.load.plan import LONG, Plan
from purgatory.testing import VirtualTimeLoop


class Recorded:
    """A design that records its calls, with the time; every request takes a while."""

    seconds = 0.0

    def __init__(self, loop: VirtualTimeLoop, plan: Plan) -> None:
        self.loop = loop
        self.generator = Generator(plan, loop.time)
        self.offered: list[tuple[float, int]] = []
        self.completed: list[tuple[float, int]] = []
        self.log: list[tuple[str, int]] = []
        # The number of requests offered at each turn of the loop.
        self.turns: list[int] = []

    async def walk(self) -> Generator:
        await self.generator.walk(self.offer, self.complete)
        return self.generator

    def offer(self, number: int) -> int:
        if not self.offered or self.turns[-1:] == [len(self.offered)]:
            self.loop.call_soon(lambda: self.turns.append(len(self.offered)))
        self.offered.append((self.loop.time(), number))
        self.log.append(("offer", number))
        if self.seconds:
            self.loop.jump(self.seconds)
        return number

    def complete(self, request: int) -> None:
        self.completed.append((self.loop.time(), request))
        self.log.append(("complete", request))


def drawn(rate: int, seconds: float) -> Plan:
    return Plan.draw(LONG, rate, seconds)


async def test_everything_happens_in_order_and_within_two_pauses_of_its_time(
    virtual_time: VirtualTimeLoop,
) -> None:
    plan = drawn(2_000, 0.5)
    recorded = Recorded(virtual_time, plan)
    started = virtual_time.time()
    walked = await recorded.walk()
    assert [number for _, number in recorded.offered] == list(range(len(plan)))
    assert [number for _, number in recorded.completed] == list(plan.completing)
    for happened, planned in ((recorded.offered, plan.arrivals), (recorded.completed, plan.completions)):
        for (when, _), due in zip(happened, planned, strict=False):
            assert 0 <= when - started - due <= 2 * PAUSE
    assert walked.sent == len(plan)
    assert walked.figures(1.0, 0.0)["behind_ms"] <= 2e3 * PAUSE
    assert list(walked.arrived_at) == [when for when, _ in recorded.offered]


async def test_more_than_a_batch_at_once_gives_the_loop_its_turn_in_between(
    virtual_time: VirtualTimeLoop,
) -> None:
    plan = drawn(1_000_000, 0.001)
    recorded = Recorded(virtual_time, plan)
    await recorded.walk()
    assert len(plan) > 5 * BATCH
    assert recorded.turns[:5] == [BATCH * turn for turn in range(1, 6)]


async def test_one_that_falls_behind_is_cut_short_and_completes_what_was_sent(
    virtual_time: VirtualTimeLoop,
) -> None:
    plan = drawn(2_000, 0.5)
    recorded = Recorded(virtual_time, plan)
    recorded.seconds = 0.001
    walked = await recorded.walk()
    assert walked.figures(1.0, 0.0)["behind_ms"] > BEHIND_MS
    # 0.6 s at a millisecond each.
    assert len(recorded.offered) == walked.sent == pytest.approx(600, abs=BATCH)
    assert {number for _, number in recorded.completed} == {
        number for number in range(walked.sent) if plan.completes[number]
    }


async def test_requests_that_never_end_are_counted_in_the_error(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "PATIENCE", 1.0)
    plan = drawn(100, 0.1)
    recorded = Recorded(virtual_time, plan)
    walked = await recorded.walk()
    for number in range(1, walked.sent):
        walked.end(number)
    ended = walked.sent - 1
    with pytest.raises(AssertionError, match=f"{ended} of {walked.sent} requests .* {ended} ends"):
        await walked.expirations()
