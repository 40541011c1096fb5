"""Questions whose contenders give what they are told to."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.question import Answer, Column, Contender, Question, Sample, Table


def contender(name: str, section: str = "callbacks") -> Contender:
    """One that is never measured itself."""

    def never() -> Sample:
        raise NotImplementedError

    return Contender(section, name, never)


def question(*contenders: Contender, patience: float = 60.0, name: str = "cost") -> Question:
    """A question with one table of two metrics."""
    columns = (Column("us", "n = 10"), Column("held", "entries", spread=False))
    return Question(name, "what it costs", contenders, (Table("Microseconds", columns, "Of n."),), patience)


def answer(figures: dict[Contender, Sequence[Sample]]) -> Answer:
    """A question that has been answered so."""
    return Answer(question(*figures), {each: list(samples) for each, samples in figures.items()})
