"""Figures for several n are lines against n."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.question import Answer
from benchmarks.report.growth import over_columns, over_sections, split_size
from benchmarks.report.run import read
from tests.benchmarks.report import records
from tests.benchmarks.report.records import Record, column, contender, question


def _answer(directory: Path, asked: Record) -> Answer:
    (answer,) = read(records.write(directory, records.run(asked))).answers
    return answer


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("callbacks, N = 10,000", ("callbacks", 10_000)),
        ("callbacks, N = 10,000, collector off", ("callbacks, collector off", 10_000)),
        ("n = 1,000,000", ("", 1_000_000)),
        ("per second, n = 500", ("per second", 500)),
        ("n waits on n / 1,000 keys", ("n waits on n / 1,000 keys", None)),
        ("run = 5", ("run = 5", None)),
    ],
)
def test_a_text_is_split_from_its_n(text: str, split: tuple[str, int | None]) -> None:
    assert split_size(text) == split


def test_sections_that_differ_in_their_n_belong_together(tmp_path: Path) -> None:
    answer = _answer(
        tmp_path,
        question(
            [
                contender("callbacks, N = 1,000", "purgatory", {"us": 4.0}, {"us": 5.0}),
                contender("callbacks, N = 1,000", "heap", {"us": 8.0}),
                contender("callbacks, N = 100", "purgatory", {"us": 2.0}, {"us": 4.0}),
                contender("callbacks, N = 100", "heap", {}),
                contender("tasks, N = 100", "purgatory", {"us": 20.0}),
                contender("no size", "purgatory", {"us": 1.0}),
            ],
            column("us", "total"),
        ),
    )

    (growth,) = over_sections(answer, answer.question.tables[0])

    assert growth.where == "callbacks"
    assert growth.sizes == [100, 1_000]
    purgatory, heap = growth.lines
    assert list(purgatory.figures.items()) == [(100, [2.0, 4.0]), (1_000, [4.0, 5.0])]
    assert purgatory.ratios(1_000) == [2.0, 1.25]
    assert (heap.name, dict(heap.figures)) == ("heap", {1_000: [8.0]})


def test_columns_that_differ_in_their_n_are_a_line_for_each_contender_of_a_section(tmp_path: Path) -> None:
    sample = {"us_1000": 4.0, "us_100": 2.0, "us_growth": 2.0, "per_second_1000": 250.0}
    answer = _answer(
        tmp_path,
        question(
            [
                contender("callbacks", "purgatory", sample),
                contender("callbacks", "list", {"us_100": 1.0}),
                contender("tasks", "purgatory", sample),
            ],
            column("us_1000", "n = 1,000"),
            column("us_100", "n = 100"),
            column("us_growth", "growth"),
            column("per_second_1000", "per second, n = 1,000"),
        ),
    )

    callbacks, tasks = over_columns(answer, answer.question.tables[0])

    assert (callbacks.where, tasks.where) == ("callbacks", "tasks")
    assert [(line.name, dict(line.figures)) for line in callbacks.lines] == [
        ("purgatory", {100: [2.0], 1_000: [4.0]}),
        ("list", {100: [1.0]}),
    ]


def test_a_single_n_is_no_growth(tmp_path: Path) -> None:
    answer = _answer(
        tmp_path, question([contender("N = 100", "purgatory", {"us": 1.0})], column("us", "n = 100"))
    )

    assert not over_sections(answer, answer.question.tables[0])
    assert not over_columns(answer, answer.question.tables[0])
