"""The distribution as a user gets it: built from its source archive, installed into an empty environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ROUND_TRIP = """
import asyncio, sys
import purgatory

class Answer(purgatory.DelayedOperation[str]):
    ready = False

    def try_complete(self):
        return self.ready and self.force_complete()

    def on_complete(self):
        return "expired" if self.expired else "completed"

async def main():
    async with purgatory.Purgatory() as answers:
        first = answers.try_complete_else_watch(Answer(timeout=60), ["a", "b"])
        second = answers.try_complete_else_watch(Answer(timeout=0.01), ["a"])
        first.ready = True
        asyncio.get_running_loop().call_soon(answers.check_and_complete, "b")
        print(await first, await second, answers.statistics().pending, purgatory.COMPILED)

asyncio.run(main())
print(sorted({"uvloop", "mypy_extensions", "rich", "pytest", "pyspark", "pyarrow"} & set(sys.modules)))
"""

pytestmark = pytest.mark.timeout(600)


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What the command prints, run without this project's tree on its path."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PURGATORY"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def source_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, built from a copy, so that no build leaves anything in the tree."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ["pyproject.toml", "setup.py", "README.md"]:
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "purgatory", tree / "purgatory", ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tree / "dist", cwd=tree)
    (archive,) = (tree / "dist").glob("*.tar.gz")
    return archive


def build_wheel(archive: Path, tmp_path: Path, **environment: str) -> Path:
    run(
        *(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"),
        *("--wheel-dir", tmp_path / "wheels", archive),
        cwd=tmp_path,
        **environment,
    )
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    return wheel


def round_trip(wheel: Path, tmp_path: Path) -> list[str]:
    """Install the wheel, and what it asks for, into an environment with nothing else; what it answers."""
    run(sys.executable, "-m", "venv", tmp_path / "empty", cwd=tmp_path)
    python = tmp_path / "empty" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    return run(python, "-I", "-W", "error", "-c", ROUND_TRIP, cwd=tmp_path).splitlines()


def test_the_source_archive_holds_what_the_build_needs(source_archive: Path) -> None:
    with tarfile.open(source_archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"pyproject.toml", "setup.py", "README.md", "purgatory/py.typed"} <= names
    assert not {name for name in names if name.endswith((".so", ".c"))}


def test_an_installed_wheel_makes_a_round_trip_with_the_compiled_core(
    source_archive: Path, tmp_path: Path
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    wheel = build_wheel(source_archive, tmp_path)

    assert round_trip(wheel, tmp_path) == ["completed expired 0 True", "[]"]


def test_a_pure_python_wheel_fits_every_platform_and_makes_the_same_round_trip(
    source_archive: Path, tmp_path: Path
) -> None:
    wheel = build_wheel(source_archive, tmp_path, PURGATORY_PURE_PYTHON="1")

    assert wheel.name.endswith("-py3-none-any.whl")
    assert round_trip(wheel, tmp_path) == ["completed expired 0 False", "[]"]


def test_a_build_whose_compiler_fails_gives_the_interpreted_core(
    source_archive: Path, tmp_path: Path
) -> None:
    wheel = build_wheel(source_archive, tmp_path, CC="false")

    assert round_trip(wheel, tmp_path) == ["completed expired 0 False", "[]"]
