"""Every program of the documentation runs as it is, and prints what its page says."""

from __future__ import annotations

import asyncio
import logging
import runpy
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import prometheus_client
import pytest

from purgatory.testing import VirtualTimeLoop
from tests.docs.programs import PROGRAMS, ROOT, WIDTH, Program, write_programs

# Virtual time passes while data is on its way through a socket, or to a loop in another thread.
IN_REAL_TIME = {
    "docs/how-to/asyncio-and-anyio.md",
    "docs/how-to/server-sent-events.md",
    "docs/how-to/test-kafka-clients.md",
    "docs/how-to/websocket-acks.md",
    "docs/how-to/websocket.md",
}
# Test modules and their conftest.py, which the tests of these pages run by pytest.
RUN_BY_PYTEST = {
    "docs/how-to/test-kafka-clients.md",
    "docs/how-to/testing-services.md",
    "docs/how-to/virtual-time.md",
}


def page_of(program: Program) -> str:
    return program.page.relative_to(ROOT).as_posix()


def needs_pytest(program: Program) -> bool:
    is_test = "pytest" in program.code or "def test_" in program.code
    return page_of(program) in RUN_BY_PYTEST and is_test


# Modules of one service are run together, by tests of their page.
STANDALONE = [program for program in PROGRAMS if not (needs_pytest(program) or program.module)]


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Takes away the handlers and the metrics that a program has added."""
    monkeypatch.setattr(prometheus_client, "REGISTRY", prometheus_client.CollectorRegistry())
    logger = logging.getLogger("purgatory")
    handlers, level = logger.handlers[:], logger.level
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize("program", STANDALONE, ids=lambda program: program.name)
def test_a_program_prints_what_its_page_says(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.printed is not None, "a text block with what the program prints must follow it"
    path = tmp_path / f"{program.name}.py"
    path.write_text(program.code)
    monkeypatch.chdir(tmp_path)
    if page_of(program) not in IN_REAL_TIME:
        # So that no timing decides, and nobody waits.
        monkeypatch.setattr(asyncio.events, "new_event_loop", VirtualTimeLoop)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr() == (program.printed, "")


def test_a_program_runs_on_its_own_in_real_time(tmp_path: Path) -> None:
    """The first program of the README, as a reader runs it."""
    readme = next(program for program in PROGRAMS if page_of(program) == "README.md")
    path = tmp_path / "example.py"
    path.write_text(readme.code)
    done = subprocess.run([sys.executable, "-W", "error", path], text=True, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (readme.printed, "")


RUFF = ("--config", "pyproject.toml", "--line-length", str(WIDTH), "--no-cache")


def check_all(command: Sequence[str | Path], directory: Path) -> None:
    """Run a checker on all programs, with the project's own settings."""
    command = [sys.executable, "-m", *command, *write_programs(directory)]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_programs_pass_strict_type_checks(tmp_path: Path) -> None:
    # A page needs no comment that a package, such as aiokafka, has no types.
    untyped = ("--disable-error-code", "import-untyped")
    check_all(["mypy", "--config-file", "pyproject.toml", *untyped], tmp_path)


def test_the_programs_pass_the_linter(tmp_path: Path) -> None:
    check_all(["ruff", "check", *RUFF], tmp_path)


def test_the_programs_are_formatted(tmp_path: Path) -> None:
    check_all(["ruff", "format", "--diff", *RUFF], tmp_path)
