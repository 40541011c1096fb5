"""The command `run`: all steps, in one session."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from purgatory.pipeline.commands import parser
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs import advise, compact, replay, report, run, summarize
from purgatory.pipeline.replay.wheel_waits import NO_WAITS
from purgatory.pipeline.spark import Spark
from tests.pipeline.journals import Row, add_segment, operation

STEPS = {"compact": compact, "summarize": summarize, "advise": advise, "replay": replay, "report": report}

Steps = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """The steps that were run, with their options. No step does anything."""
    done: Steps = []

    def note(name: str) -> Callable[[object, Namespace], None]:
        return lambda spark, options: done.append((name, vars(options)))

    for name, step in STEPS.items():
        monkeypatch.setattr(step, "check", lambda options: None)
        monkeypatch.setattr(step, "run", note(name))
    return done


def run_all(
    spark: Any = None, journal: str = "/journals/*", dataset: str = "-dataset", page: str = "p"
) -> int:
    options = parser().parse_args(["run", "--", journal, dataset, page])
    return run.run(spark, options)


def test_each_step_gets_its_paths_and_its_default_options(
    done: Steps, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_all() == 0
    assert [name for name, _ in done] == list(STEPS)
    options = dict(done)
    expected = {"journal": "/journals/*", "dataset": "-dataset", "files_per_batch": 1000, "retry": False}
    assert options["compact"].items() >= expected.items()
    assert options["summarize"].items() >= {"dataset": "-dataset", "hottest": 20}.items()
    assert options["report"].items() >= {"dataset": "-dataset", "output": "p"}.items()
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("step 1 of 5: compact\nstep 2 of 5: summarize\n")
    assert output.err.endswith("step 5 of 5: report\n5 steps in 0 s\n")


def test_it_stops_at_the_first_step_that_fails_with_the_exit_status_of_that(
    done: Steps, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(summarize, "run", lambda spark, options: 3)
    assert run_all() == 3
    assert [name for name, _ in done] == ["compact"]
    assert capsys.readouterr().err.endswith("step 2 of 5: summarize\n")


def test_an_error_of_a_step_is_raised_and_no_other_step_is_run(
    done: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(spark: object, options: Namespace) -> None:
        raise PipelineError("no operations are compacted here")

    monkeypatch.setattr(advise, "run", fail)
    with pytest.raises(PipelineError, match="no operations"):
        run_all()
    assert [name for name, _ in done] == ["compact", "summarize"]


@pytest.mark.long
@pytest.mark.parametrize(
    "rows", [[operation(1, outcome="completed", waited_us=10, lateness_us=None)], []], ids=len
)
def test_a_journal_of_which_a_step_has_nothing_to_say_becomes_a_page(
    rows: list[Row], spark: Spark, tmp_path: Path
) -> None:
    add_segment(tmp_path / "journal", "one", rows)
    assert run_all(spark, f"{tmp_path}/journal", f"{tmp_path}/dataset", f"{tmp_path}/page") == 0
    page = (tmp_path / "page" / "index.html").read_text()
    assert NO_WAITS in page
    assert ("No operation has ended yet." in page) == (rows == [])
    assert "purgatory-pipeline" not in page


@pytest.mark.long
def test_a_journal_becomes_a_page(spark: Spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_segment(tmp_path / "journal", "one", [operation(number) for number in range(100)])
    assert run_all(spark, f"{tmp_path}/journal", f"{tmp_path}/dataset", f"{tmp_path}/page") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("operations: 1 new file, 100 rows = 100 kept")
    assert printed.endswith(f"The report is in {tmp_path}/page/index.html\n")
    page = (tmp_path / "page" / "index.html").read_text()
    assert "purgatory-pipeline" not in page
