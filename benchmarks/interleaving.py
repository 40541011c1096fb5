"""Repetitions in turns, so that a slow spell of the machine falls on everybody alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.question import Answer, Contender, Question, Sample

Measure = Callable[[Question, Contender], Sample]


def here(_: Question, contender: Contender) -> Sample:
    """Measure in this very process."""
    return contender.measure()


def ask_all(
    questions: Sequence[Question], repetitions: int, console: Console, measure: Measure = here
) -> Iterator[Answer]:
    """Ask one after the other, with a progress bar; or, where that cannot be drawn, a line for each."""
    if not console.is_terminal:
        for number, question in enumerate(questions, 1):
            console.print(f"{number}/{len(questions)} {question.summary}\n")
            yield ask(question, repetitions, measure, lambda _: None)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        steps = sum(len(question.contenders) for question in questions) * repetitions
        bar = progress.add_task("", total=steps)

        def tell(measured: str) -> None:
            progress.update(bar, description=measured)
            progress.advance(bar)

        for question in questions:
            yield ask(question, repetitions, measure, tell)


def ask(question: Question, repetitions: int, measure: Measure, tell: Callable[[str], None]) -> Answer:
    """Measure every contender once, then every one a second time, and so on.

    Each round starts with another contender, or the same one would always come after the same other one.
    `tell` hears who is next: one call for each contender in each repetition, also when the question's
    patience with it is at an end.
    """
    samples: dict[Contender, list[Sample]] = {contender: [] for contender in question.contenders}
    spent = dict.fromkeys(question.contenders, 0.0)
    last = dict.fromkeys(question.contenders, 0.0)
    for repetition in range(repetitions):
        first = repetition % len(question.contenders)
        for contender in question.contenders[first:] + question.contenders[:first]:
            tell(f"{question.name}: {contender.name}")
            if not samples[contender] or spent[contender] + last[contender] <= question.patience:
                start = time.perf_counter()
                samples[contender].append(measure(question, contender))
                last[contender] = time.perf_counter() - start
                spent[contender] += last[contender]
    return Answer(question, samples)
