"""What the head of the page says of a purgatory."""

from __future__ import annotations

import pytest

from purgatory import PurgatoryFull
from purgatory.testing import ManualClock
from purgatory.web.dashboard.health import Health, health_of
from purgatory.web.dashboard.shown import Shown
from tests.operations import Gate, raising
from tests.scrape import FakeRelay


def test_a_purgatory_without_alarms_is_well(clock: ManualClock) -> None:
    purgatory = clock.purgatory()
    shown = Shown(purgatory)
    purgatory.try_complete_else_watch(Gate(0), ["a"])
    purgatory.try_complete_else_watch(Gate(), ["a"])
    clock.advance(90)
    assert health_of(shown, clock.time()) == Health(
        name=purgatory.name,
        pending=1,
        fullness="",
        refused=0,
        refused_in=90.0,
        failed=0,
        missed=0,
        connected=None,
    )


@pytest.mark.parametrize(
    ("pending", "limit", "fullness"),
    [(0, 5, ""), (3, 5, ""), (4, 5, "nearly full"), (5, 5, "full"), (9, None, "")],
)
def test_a_purgatory_is_nearly_full_from_four_fifths_of_its_limit(
    clock: ManualClock, pending: int, limit: int | None, fullness: str
) -> None:
    purgatory = clock.purgatory(max_pending=limit)
    for _ in range(pending):
        purgatory.try_complete_else_watch(Gate(), ["a"])
    assert health_of(Shown(purgatory), 0.0).fullness == fullness


def test_refusals_and_failures_are_counted_before_anybody_looks(clock: ManualClock) -> None:
    purgatory = clock.purgatory(max_pending=1)
    shown = Shown(purgatory)
    clock.advance(5)
    failing = purgatory.try_complete_else_watch(Gate(trying=raising(ValueError("bad"))), ["a"])
    assert failing.exception() is not None
    purgatory.try_complete_else_watch(Gate(), ["a"])
    for _ in range(3):
        with pytest.raises(PurgatoryFull):
            purgatory.try_complete_else_watch(Gate(), ["a"])
    clock.advance(2)
    health = health_of(shown, clock.time())
    assert (health.refused, health.refused_in, health.failed) == (3, 7.0, 1)


def test_a_relay_that_hears_nothing_is_told(clock: ManualClock) -> None:
    purgatory = clock.purgatory()
    assert health_of(Shown(purgatory, relay=FakeRelay(purgatory)), 0.0).connected is True
