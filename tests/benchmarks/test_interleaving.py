"""Repetitions are taken in turns, and only as often as the question has patience."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import interleaving
from benchmarks.question import Contender, Question, Sample
from tests.benchmarks.fakes import contender, question

ONE, OTHER, THIRD = contender("one"), contender("other"), contender("third")


class Clock:
    """Stands still while nothing is measured."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def taking(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Asks about contenders that take so many seconds each time; who was measured, in that order."""
    clock = Clock()
    monkeypatch.setattr(interleaving, "time", clock)

    def asked(seconds: dict[Contender, float], repetitions: int, patience: float = 60.0) -> list[str]:
        measured: list[str] = []

        def measure(_: Question, each: Contender) -> Sample:
            measured.append(each.name)
            clock.now += seconds[each]
            return {"us": float(len(measured))}

        told: list[str] = []
        answer = interleaving.ask(question(*seconds, patience=patience), repetitions, measure, told.append)
        assert len(told) == repetitions * len(seconds)
        assert sum(map(len, answer.samples.values())) == len(measured)
        return measured

    return asked


def test_each_round_measures_everybody_and_begins_with_another(taking: Callable[..., list[str]]) -> None:
    assert taking({ONE: 1.0, OTHER: 1.0, THIRD: 1.0}, 4) == [
        *("one", "other", "third"),
        *("other", "third", "one"),
        *("third", "one", "other"),
        *("one", "other", "third"),
    ]


def test_what_would_exceed_the_patience_is_not_measured_again(taking: Callable[..., list[str]]) -> None:
    measured = taking({ONE: 4.0, OTHER: 7.0, THIRD: 100.0}, 5, patience=20.0)
    assert [measured.count(name) for name in ("one", "other", "third")] == [5, 2, 1]


def test_without_any_patience_everybody_is_measured_once(taking: Callable[..., list[str]]) -> None:
    assert taking({ONE: 0.5, OTHER: 0.5}, 5, patience=0.0) == ["one", "other"]


def test_samples_are_in_the_order_in_which_they_were_taken() -> None:
    figures = iter(range(6))
    answer = interleaving.ask(
        question(ONE, OTHER), 3, lambda _, __: {"us": float(next(figures))}, lambda _: None
    )
    assert answer.figures(ONE, "us") == [0.0, 3.0, 4.0]
    assert answer.figures(OTHER, "us") == [1.0, 2.0, 5.0]
