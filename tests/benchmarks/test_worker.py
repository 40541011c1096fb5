"""One contender is measured once, in a process of its own."""

from __future__ import annotations

import json

import pytest

from benchmarks import worker
from benchmarks.builds import build
from benchmarks.catalogue import CATALOGUE
from benchmarks.setting import Setting
from benchmarks.worker import in_a_fresh_process
from tests.benchmarks import fakes

TINY = Setting(builds=(build(),), sizes=(20, 10), times=100, seconds=0.01)
SECTION = "a condition each, which does not hold"


def test_a_fresh_process_gives_the_sample() -> None:
    question = CATALOGUE["checks"].question(TINY)
    measure = in_a_fresh_process(TINY)
    for contender in question.contenders[:2]:
        sample = measure(question, contender)
        assert sample.keys() == contender.measure().keys()
        assert min(sample.values()) > 0


def test_what_goes_wrong_in_there_is_told_here() -> None:
    nobody = fakes.contender("nobody")
    with pytest.raises(RuntimeError, match=r"checks, callbacks: nobody failed:(.|\n)*no contender 'nobody'"):
        in_a_fresh_process(TINY)(fakes.question(nobody, name="checks"), nobody)


def test_the_worker_prints_the_sample_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    worker.main(["checks", SECTION, "Kafka's present design", "--setting", TINY.to_json()])
    assert json.loads(capsys.readouterr().out).keys() > {"unwatched_us_10", "unwatched_us_20"}


def test_the_worker_refuses_to_measure_another_build_than_it_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "purgatory" if build() == "interpreted" else "purgatory, interpreted"
    with pytest.raises(SystemExit):
        worker.main(["checks", SECTION, name])
    assert "the core imported here is not" in capsys.readouterr().err


def test_the_worker_says_whom_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        worker.main(["checks", "elsewhere", "purgatory"])
    assert "checks has no contender 'purgatory' in a section 'elsewhere'" in capsys.readouterr().err
