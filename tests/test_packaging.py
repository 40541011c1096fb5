"""The distribution as a user gets it: built from its source archive, installed into an empty environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Runs the command without this project's tree on its import path, and returns its output."""
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
    """The source archive, built from a copy, so that no build leaves files in the tree."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ["pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE"]:
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "purgatory", tree / "purgatory", ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "tests").mkdir()
    shutil.copy(__file__, tree / "tests")
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tree / "dist", cwd=tree)
    (archive,) = (tree / "dist").glob("*.tar.gz")
    return archive


def build_wheel(archive: Path, tmp_path: Path, **environment: str) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir"]
    run(*command, tmp_path / "wheels", archive, cwd=tmp_path, **environment)
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def pure_wheel(source_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(source_archive, tmp_path_factory.mktemp("pure"), PURGATORY_PURE_PYTHON="1")


def round_trip(wheel: Path, tmp_path: Path) -> list[str]:
    """Installs the wheel into an empty environment, and returns what ROUND_TRIP prints there."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty", cwd=tmp_path)
    python = tmp_path / "empty" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel, cwd=tmp_path)
    return run(python, "-I", "-W", "error", "-c", ROUND_TRIP, cwd=tmp_path).splitlines()


def test_the_source_archive_holds_what_the_build_needs(source_archive: Path) -> None:
    with tarfile.open(source_archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE", "purgatory/py.typed"} <= names
    assert not {name for name in names if name.endswith((".so", ".c")) or name.startswith("tests/")}


@pytest.mark.long
def test_an_installed_wheel_makes_a_round_trip_with_the_compiled_core(
    source_archive: Path, tmp_path: Path
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    # Optimization takes most of the time of a build.
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/usr/bin/env bash\nexec cc "${@/#-O3/-O0}"\n')
    compiler.chmod(0o755)
    wheel = build_wheel(source_archive, tmp_path, CC=str(compiler))

    assert round_trip(wheel, tmp_path) == ["completed expired 0 True", "[]"]


def test_a_pure_python_wheel_fits_every_platform_and_makes_the_same_round_trip(
    pure_wheel: Path, tmp_path: Path
) -> None:
    assert pure_wheel.name.endswith("-py3-none-any.whl")
    assert round_trip(pure_wheel, tmp_path) == ["completed expired 0 False", "[]"]


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(files.read(name))


def test_a_wheel_names_its_licence_and_holds_the_text(pure_wheel: Path) -> None:
    assert metadata(pure_wheel)["License-Expression"] == "Apache-2.0"
    assert metadata(pure_wheel).get_all("License-File") == ["LICENSE"]
    with zipfile.ZipFile(pure_wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith("/LICENSE"))
        assert files.read(name) == (ROOT / "LICENSE").read_bytes()


@pytest.mark.long
def test_a_build_whose_compiler_fails_is_an_error_where_the_compiled_core_is_required(
    source_archive: Path, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=r"Command '\['false', .* returned non-zero exit status"):
        build_wheel(source_archive, tmp_path, CC="false", PURGATORY_REQUIRE_COMPILED="1")


@pytest.mark.long
def test_a_build_whose_compiler_fails_gives_the_interpreted_core(
    source_archive: Path, pure_wheel: Path, tmp_path: Path
) -> None:
    wheel = build_wheel(source_archive, tmp_path, CC="false")

    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    with zipfile.ZipFile(pure_wheel) as files:
        pure = {name for name in files.namelist() if ".dist-info/" not in name}
    assert {name for name in names if ".dist-info/" not in name} == pure
