"""Each design under load, in virtual time."""

from __future__ import annotations

import pytest

from benchmarks.designs import KAFKAS
from benchmarks.designs.alternative import RoundTrips
from benchmarks.designs.purgatory_waits import PurgatoryCallback
from benchmarks.suites import load
from benchmarks.suites.load import DESIGNS, PurgatoryRequest, generator, measure
from benchmarks.suites.load.generator import BEHIND_MS, Generator
from benchmarks.suites.load.plan import LONG, SHORT, Distribution, Plan
from purgatory.testing import VirtualTimeLoop

RATE = 5_000


def drawn(distribution: Distribution = SHORT) -> Plan:
    return Plan.draw(distribution, RATE, 0.5)


@pytest.mark.parametrize("distribution", [SHORT, LONG], ids=str)
@pytest.mark.parametrize("design", DESIGNS)
async def test_a_design_ends_every_request_once_and_as_planned(
    design: type[RoundTrips], distribution: Distribution, virtual_time: VirtualTimeLoop
) -> None:
    plan = drawn(distribution)
    measured = await measure(design, plan, virtual_time.time)
    assert measured["sent"] == measured["completed"] + measured["expired"] == len(plan)
    # But for those that would complete in the very milliseconds in which they expire.
    assert measured["completed"] == pytest.approx(sum(plan.completes), rel=0.02)
    assert measured["achieved"] == pytest.approx(RATE, rel=0.03)
    assert measured["behind_ms"] <= 2
    if design in KAFKAS:
        # A purge is due after 1,000 requests with 3 keys each; more of them may come before it.
        assert 0 < measured["held"] < 2 * 3_000 < measured["sent"] * 3
    else:
        assert 0 <= measured["late_p50_ms"] <= measured["late_p99_ms"] <= 1.001


async def test_a_design_that_loses_a_request_is_refused(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "PATIENCE", 1.0)

    def forgotten(timeout: float, number: int, generator: Generator) -> PurgatoryRequest:
        request = PurgatoryRequest(timeout, number, generator)
        if number == 7:
            virtual_time.call_later(0.0, request.cancel)
        return request

    monkeypatch.setattr(load, "REQUESTS", {PurgatoryCallback: forgotten})
    with pytest.raises(AssertionError, match="requests ended once"):
        await measure(PurgatoryCallback, drawn(), virtual_time.time)


async def test_a_saturated_run_achieves_what_was_sent_in_its_time(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(timeout: float, number: int, generator: Generator) -> PurgatoryRequest:
        virtual_time.jump(0.001)
        return PurgatoryRequest(timeout, number, generator)

    monkeypatch.setattr(load, "REQUESTS", {PurgatoryCallback: slow})
    measured = await measure(PurgatoryCallback, drawn(), virtual_time.time)
    assert measured["achieved"] == pytest.approx(1_000, rel=0.05)
    assert measured["behind_ms"] > BEHIND_MS
