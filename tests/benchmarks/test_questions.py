"""Every question can be asked of everybody: once, with very few waits, in this process."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks import memory
from benchmarks.catalogue import CATALOGUE
from benchmarks.constructs.purgatory_waits import PurgatoryCallback
from benchmarks.question import Question
from benchmarks.setting import Setting

TINY = Setting(builds=("interpreted",), full=True, sizes=(40, 20), times=100, seconds=0.01)


@pytest.fixture(params=CATALOGUE)
def question(request: pytest.FixtureRequest) -> Question:
    return CATALOGUE[request.param].question(TINY)


@pytest.mark.real_time
def test_every_contender_gives_figures_for_the_tables(
    question: Question, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # That takes one more process for each of them.
    monkeypatch.setattr(memory, "STATM", tmp_path / "none")
    columns = {table.columns[0].metric for table in question.tables}
    for contender in question.contenders:
        sample = contender.measure()
        assert all(map(math.isfinite, sample.values())), contender
        assert columns & sample.keys(), contender


def test_contenders_are_told_apart_by_section_and_name() -> None:
    for full in (False, True):
        for entry in CATALOGUE.values():
            question = entry.question(Setting(full=full))
            names = [(contender.section, contender.name) for contender in question.contenders]
            assert len(set(names)) == len(names)


def test_purgatory_is_what_each_section_is_compared_with() -> None:
    for entry in CATALOGUE.values():
        sections: dict[str, str] = {}
        for contender in entry.question(Setting(full=True)).contenders:
            sections.setdefault(contender.section, contender.name)
        assert all(first.startswith("purgatory") for first in sections.values())


def test_a_question_asks_more_in_a_full_run() -> None:
    usual, full = (
        sum(len(entry.question(Setting(full=full)).contenders) for entry in CATALOGUE.values())
        for full in (False, True)
    )
    assert usual < full


def test_the_resident_set_is_counted_in_a_process_of_its_own() -> None:
    sample = memory.measure("asyncio", PurgatoryCallback, 1_000, 1)
    assert 150 < sample["allocated"] < 350
    if memory.STATM.exists():
        assert sample["resident"] > 50
