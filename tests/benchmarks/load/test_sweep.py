"""Raising the rate until nobody keeps up."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.load.contestant import Contestant
from benchmarks.load.measurement import Measurement
from benchmarks.load.sweep import Sweep
from tests.benchmarks.load.fakes import FakeContestant

RATES = (10, 20, 30, 40, 50, 60)
GENERATOR = FakeContestant("generator", "")


def swept(*contestants: FakeContestant, repetitions: int = 1) -> tuple[Sweep, list[tuple[str, int]]]:
    """A sweep that is over, and who was measured at which rate, in order."""
    log = []

    def measure(contestant: Contestant, rate: int) -> Measurement:
        assert isinstance(contestant, FakeContestant)
        log.append((contestant.design, rate))
        return contestant.at(rate)

    sweep = Sweep(contestants, GENERATOR, RATES, repetitions, measure)
    assert len(list(sweep.steps())) == len(log)
    return sweep, log


def test_a_design_is_given_up_after_it_was_saturated_twice_in_a_row() -> None:
    sweep, _ = swept(FakeContestant("slow", "", limit=25), FakeContestant("fast", ""))
    slow, fast = sweep.curves
    assert [point.rate for point in slow.points] == [10, 20, 30, 40]
    assert [point.saturated for point in slow.points] == [False, False, True, True]
    assert [point.rate for point in fast.points] == list(RATES)


def test_one_that_keeps_up_again_goes_on() -> None:
    class OnceDisturbed(FakeContestant):
        def at(self, rate: int) -> Measurement:
            return super().at(rate if rate != 30 else 10)

    sweep, _ = swept(OnceDisturbed("disturbed", ""))
    [curve] = sweep.curves
    assert [point.saturated for point in curve.points] == [False, False, True, False, False, False]
    assert curve.kept_up_with == 20


def test_it_is_over_when_all_are_given_up() -> None:
    sweep, log = swept(FakeContestant("slow", "", limit=5), FakeContestant("slower", "", limit=1))
    assert max(rate for _, rate in log) == 20
    assert [curve.kept_up_with for curve in sweep.curves] == [None, None]
    assert [point.rate for point in sweep.generator.points] == [10, 20]


def test_at_each_rate_they_take_turns_and_begin_one_after_the_other() -> None:
    _, log = swept(FakeContestant("a", ""), FakeContestant("b", ""), repetitions=3)
    first = [design for design, rate in log if rate == 10]
    assert first == ["a", "b", "generator", "b", "a", "a", "b"]
    assert [rate for _, rate in log] == sorted(rate for _, rate in log)


def test_every_repetition_is_kept_in_order() -> None:
    class Numbered(FakeContestant):
        numbers: Iterator[int] = iter(range(100))

        def at(self, rate: int) -> Measurement:
            return Measurement(rate + next(self.numbers), 0, sent=1)

    sweep, _ = swept(Numbered("numbered", ""), repetitions=3)
    [curve] = sweep.curves
    assert curve.points[1].figures("achieved") == [20 + 3, 20 + 4, 20 + 5]
    assert curve.at(20) is curve.points[1]
    assert curve.at(21) is None
    assert len(sweep.generator.points[1].measurements) == 1


def test_the_steps_tell_how_much_is_over() -> None:
    sweep = Sweep([FakeContestant("a", "")], GENERATOR, (10, 20), 2, lambda _, rate: GENERATOR.at(rate))
    assert [step.over for step in sweep.steps()] == [1 / 8, 1 / 4, 1 / 2, 5 / 8, 3 / 4, 1]
