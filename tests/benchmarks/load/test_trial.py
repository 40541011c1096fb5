"""Each design under load, in virtual time."""

from __future__ import annotations

import pytest

from benchmarks.designs.purgatory_waits import PurgatoryCallback
from benchmarks.harness.benchmark import Row, Sample
from benchmarks.suites import load
from benchmarks.suites.load import ACHIEVED, DISTRIBUTIONS, GENERATOR, Distribution, Plan, trial
from benchmarks.suites.load.trial import DESIGNS, Generator, PurgatoryRequest, measure
from purgatory.testing import VirtualTimeLoop

RATE = 5_000


def drawn(distribution: Distribution = DISTRIBUTIONS[0]) -> Plan:
    return Plan.draw(distribution, RATE, 0.5)


def saturated(rate: int, *samples: Sample) -> bool:
    return load.saturated(Row("design", str(rate), None, samples))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
@pytest.mark.parametrize("design", [name for name in DESIGNS if name != GENERATOR])
async def test_a_design_ends_every_request_once_and_as_planned(
    design: str, distribution: Distribution, virtual_time: VirtualTimeLoop
) -> None:
    plan = drawn(distribution)
    measured = await DESIGNS[design](plan, virtual_time.time)
    assert measured["sent"] == measured["completed"] + measured["expired"] == len(plan)
    # But for those that would complete in the very milliseconds in which they expire.
    assert measured["completed"] == pytest.approx(sum(plan.completes), rel=0.02)
    assert measured["achieved"] == pytest.approx(RATE, rel=0.03)
    assert measured["behind_ms"] <= 2


async def test_purgatory_expires_none_early_and_none_a_tick_late(virtual_time: VirtualTimeLoop) -> None:
    measured = await DESIGNS["purgatory"](drawn(), virtual_time.time)
    assert 0 <= measured["late_p50_ms"] <= measured["late_p99_ms"] <= 1.001


@pytest.mark.parametrize("design", ["Kafka 0.8's design", "Kafka's present design"])
async def test_the_designs_that_purge_hold_what_has_ended_but_not_much_of_it(
    design: str, virtual_time: VirtualTimeLoop
) -> None:
    measured = await DESIGNS[design](drawn(), virtual_time.time)
    # A purge is due after 1,000 requests with 3 keys each; more of them may come before it.
    assert 0 < measured["held"] < 2 * 3_000 < measured["sent"] * 3


async def test_a_design_that_loses_a_request_is_refused(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "PATIENCE", 1.0)

    def forgotten(timeout: float, number: int, generator: Generator) -> PurgatoryRequest:
        request = PurgatoryRequest(timeout, number, generator)
        if number == 7:
            virtual_time.call_later(0.0, request.cancel)
        return request

    with pytest.raises(AssertionError, match="requests ended once"):
        await measure(PurgatoryCallback, forgotten, drawn(), virtual_time.time)


async def test_a_saturated_run_achieves_what_was_sent_in_its_time(virtual_time: VirtualTimeLoop) -> None:
    def slow(timeout: float, number: int, generator: Generator) -> PurgatoryRequest:
        virtual_time.jump(0.001)
        return PurgatoryRequest(timeout, number, generator)

    measured = await measure(PurgatoryCallback, slow, drawn(), virtual_time.time)
    assert measured["achieved"] == pytest.approx(1_000, rel=0.05)
    assert measured["behind_ms"] > 100
    assert saturated(RATE, measured)


async def test_the_generator_alone_sends_everything(virtual_time: VirtualTimeLoop) -> None:
    plan = drawn()
    measured = await DESIGNS[GENERATOR](plan, virtual_time.time)
    assert measured["sent"] == len(plan)
    assert measured["achieved"] == pytest.approx(RATE, rel=0.03)
    assert not {"completed", "expired", "held"} & measured.keys()


@pytest.mark.parametrize(
    ("achieved", "behind_ms", "outcome"),
    [(1_000, 0, False), (ACHIEVED * 1_000, 100, False), (ACHIEVED * 1_000 - 1, 0, True), (1_000, 101, True)],
)
def test_saturated_is_what_misses_the_rate_or_is_behind(
    achieved: float, behind_ms: float, outcome: bool
) -> None:
    assert saturated(1_000, {"achieved": achieved, "behind_ms": behind_ms}) is outcome


def test_saturation_goes_by_the_median_of_the_repetitions() -> None:
    slow, fast = {"achieved": 500, "behind_ms": 900}, {"achieved": 1_000, "behind_ms": 0}
    assert not saturated(1_000, fast, slow, fast)
    assert saturated(1_000, slow, fast, slow)
