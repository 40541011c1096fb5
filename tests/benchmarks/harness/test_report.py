"""A run is recorded, read again, and drawn; the kept runs give the published pages."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import command
from benchmarks.harness import record
from benchmarks.harness.benchmark import Setting
from benchmarks.harness.processes import COMPILED, ROOT, environment, processor_seconds
from benchmarks.harness.report import main, site
from tests.benchmarks.harness.test_figures import MEASURED

PUBLISHED = ROOT / "docs" / "benchmarks"
RUNS = sorted((PUBLISHED / "runs").glob("*.json"))


@pytest.mark.slow
def test_a_run_is_read_as_it_was_written_and_every_page_is_linked(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    written = record.new_run(Setting("uvloop", ["compiled"], full=True), 2)
    written.benchmarks.append(MEASURED)
    written.write(file)
    run = record.read(file)
    (result,) = run.benchmarks
    assert result == replace(MEASURED, tables=result.tables)
    assert result.tables == MEASURED.tables
    files = site({file: run})
    assert sorted(files) == ["README.md", "uvloop/cost.md"]
    assert re.findall(r"\]\(([^)\s]+)\)", files["README.md"]) == ["uvloop/cost.md"]
    again = "python -m benchmarks suite --only cost --full --seconds 1 --loop uvloop"
    assert again in files["README.md"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "JSONDecodeError"),
        ("{}", "KeyError('benchmarks')"),
        ('{"benchmarks": []}', "missing 8 required positional arguments"),
        ("[]", "TypeError"),
    ],
)
def test_a_file_that_is_no_run_ends_the_report_with_one_line(text: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(SystemExit, match=rf"run\.json is no record of a run: .*{re.escape(error)}"):
        command.main(["report", str(file), "--into", str(tmp_path / "docs")])


@pytest.mark.slow
def test_the_same_benchmark_in_two_runs_is_refused() -> None:
    run = record.read(RUNS[0])
    with pytest.raises(RuntimeError, match=r"again\.json: expiry on asyncio is in another file as well"):
        site({RUNS[0]: run, Path("again.json"): run})


@pytest.mark.slow
def test_the_kept_runs_give_the_published_pages_byte_for_byte(tmp_path: Path) -> None:
    main([*map(str, RUNS), "--into", str(tmp_path)])
    drawn = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    files = [path for path in PUBLISHED.rglob("*") if path.suffix in (".md", ".svg")]
    published = {path.relative_to(PUBLISHED): path.read_bytes() for path in files}
    assert drawn.keys() == published.keys()
    assert [path for path, page in drawn.items() if page != published[path]] == []


@pytest.mark.parametrize(("build", "first"), [("compiled", [COMPILED, ROOT]), ("interpreted", [ROOT])])
def test_a_process_imports_the_build_that_it_measures(
    build: str, first: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"/elsewhere:{COMPILED}:{ROOT}")
    variables = environment("compiled" if build == "compiled" else "interpreted")
    assert variables["PYTHONPATH"].split(":")[: len(first) + 1] == [*map(str, first), "/elsewhere"]
    assert variables["PYTHONSAFEPATH"] == "1"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has this clock")
def test_the_processor_time_of_threads_that_have_ended_counts() -> None:
    used = 0.0

    def work() -> None:
        nonlocal used
        while used < 0.02:
            used = time.thread_time()

    before = processor_seconds(os.getpid())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert processor_seconds(os.getpid()) - before >= 0.02
