"""A run is recorded, read again, and drawn; the kept runs give the published pages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import command
from benchmarks.harness import record
from benchmarks.harness.benchmark import Result, Row, Setting, Table
from benchmarks.harness.processes import COMPILED, ROOT, environment
from benchmarks.harness.report import main, site
from benchmarks.suites.load import COLUMNS, GENERATOR
from tests.benchmarks.harness.test_figures import MEASURED

PUBLISHED = ROOT / "docs" / "benchmarks"
RUNS = sorted((PUBLISHED / "runs").glob("*.json"))


def load_test() -> Result:
    samples = [{"achieved": 500.0, "behind_ms": 900.0, "sent": 100}]
    rows = [Row(name, "1,000", None, samples) for name in ("purgatory", GENERATOR)]
    return Result("load", "p50/p75 20/60 ms", "Half of them.", [Table("p50/p75", COLUMNS)], rows)


@pytest.mark.slow
def test_a_run_is_read_as_it_was_written_and_every_page_is_linked(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    written = record.new_run(Setting("uvloop", ["compiled"], full=True), 2)
    written.benchmarks += [MEASURED, load_test()]
    written.write(file)
    run = record.read(file)
    result, load = run.benchmarks
    assert result == replace(MEASURED, tables=result.tables)
    assert result.tables == MEASURED.tables
    assert load == replace(load_test(), tables=load.tables)
    files = site({file: run})
    pages = ["uvloop/load-p50-p75-20-60-ms.svg", "uvloop/load.md"]
    assert sorted(files) == ["README.md", "uvloop/cost-us.svg", "uvloop/cost.md", *pages]
    links = set(re.findall(r"\]\(([^)\s]+)\)", files["README.md"]))
    assert links == {"uvloop/cost.md", "uvloop/load.md"}
    again = "python -m benchmarks suite load --only cost --full --seconds 1 --loop uvloop"
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
# To draw them takes half a minute.
@pytest.mark.long
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
