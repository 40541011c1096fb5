"""A reader who does what docs/tutorial.md says sees what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

import pytest

from tests.docs.programs import DOCS, programs_of
from tests.relay.live.servers import RedisServer
from tests.web.serving import Server, serving

PAGE = DOCS / "tutorial.md"
TEXT = PAGE.read_text()
EAGER = """
import asyncio

def make_eager(loop):
    make_lazy(loop)
    loop.set_task_factory(asyncio.eager_task_factory)

make_lazy = asyncio.BaseEventLoop.__init__
asyncio.BaseEventLoop.__init__ = make_eager
"""

pytestmark = pytest.mark.skipif(not (shutil.which("bash") and shutil.which("curl")), reason="needs curl")


def blocks(language: str) -> list[str]:
    return [found[1] for found in re.finditer(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)]


(INI,) = blocks("ini")
WITH_PEOPLE, WITH_RELAY = blocks("diff")
POLL, PEOPLE, PYTEST = blocks("console")


def changed(text: str, diff: str) -> str:
    """The text with the changes of a diff. Its lines without a sign say where a change belongs."""
    done, rest = "", text
    for line in diff.splitlines(keepends=True):
        sign, line = line[0], line[1:]
        if sign == "+":
            done += line
        elif line:
            before, found, rest = rest.partition(line)
            assert found, f"there is no line {line!r}"
            done += before + (line if sign == " " else "")
    return done + rest


@pytest.fixture(params=["lazy tasks", "eager tasks"])
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the reader has saved before the last section."""
    for program in programs_of(PAGE):
        (tmp_path / f"{program.module}.py").write_text(program.code)
    change(tmp_path, WITH_PEOPLE)
    (tmp_path / "pytest.ini").write_text(INI)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    if request.param == "eager tasks":
        if sys.version_info < (3, 12):
            pytest.skip("there are no eager tasks before Python 3.12")
        (tmp_path / "sitecustomize.py").write_text(EAGER)
    return tmp_path


def change(project: Path, diff: str) -> None:
    service = project / "service.py"
    service.write_text(changed(service.read_text(), diff))


@contextmanager
def worker(project: Path) -> Iterator[Server]:
    with serving(("uvicorn", "service:app", "--port", "{port}", "--loop", "asyncio"), project, "") as server:
        yield server


def check(session: str, *servers: Server) -> None:
    """Run the commands, each on another of the servers in turn. They print what the session shows."""
    commands = "\n".join(line[2:] for line in session.splitlines() if line.startswith("$ "))
    addresses = cycle(f"127.0.0.1:{server.port}" for server in servers)
    script = re.sub("localhost:8000", lambda _: next(addresses), commands)
    done = subprocess.run(["bash", "-ec", script], text=True, capture_output=True, check=True, timeout=60)
    # curl ends no line.
    shown = "".join(line for line in session.splitlines() if not line.startswith("$ "))
    assert done.stdout == shown


@pytest.mark.slow
def test_the_service_answers_as_shown(project: Path) -> None:
    with worker(project) as server:
        check(POLL, server)
        check(PEOPLE, server)


def test_the_shown_tests_pass(project: Path) -> None:
    command, dots, summary = PYTEST.splitlines()
    assert command == "$ pytest -q"

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        text=True,
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(f"{dots}\n{summary.partition(' in ')[0]} in ")


@pytest.mark.slow
def test_a_change_on_one_worker_answers_a_client_of_another(project: Path) -> None:
    change(project, WITH_RELAY)
    with ExitStack() as running:
        redis = running.enter_context(RedisServer())
        service = project / "service.py"
        text = service.read_text().replace("Redis(", f"Redis(port={redis.port}, ", 1)
        # Otherwise the relay looks at each key within 30 seconds, though nothing was signalled.
        service.write_text(text.replace('prefix="jobs")', 'prefix="jobs"), anti_entropy=3600', 1))
        check(POLL, *[running.enter_context(worker(project)) for _ in range(2)])
