"""How a process comes to have the build of the core that it is to measure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.builds import SOURCES, builds_at_hand, environment


def path(environment: Mapping[str, str]) -> list[str]:
    return [entry for entry in environment["PYTHONPATH"].split(os.pathsep) if entry]


def test_the_interpreted_build_comes_from_the_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/elsewhere", str(SOURCES)]))
    assert path(environment("interpreted")) == [str(SOURCES), "/elsewhere"]


def test_the_compiled_build_is_not_hidden_by_the_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SOURCES.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["src", "/elsewhere", str(SOURCES)]))
    assert path(environment("compiled")) == ["/elsewhere"]


def test_whatever_else_is_set_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("LANGUAGE_OF_THE_TEST", "plain")
    assert environment("compiled")["LANGUAGE_OF_THE_TEST"] == "plain"
    assert path(environment("compiled")) == []


@pytest.mark.parametrize(
    ("installed", "builds"),
    [
        ("COMPILED = True", ("compiled", "interpreted")),
        ("COMPILED = False", ("interpreted",)),
        ("raise ImportError", ("interpreted",)),
    ],
)
def test_the_interpreted_build_is_always_at_hand_the_compiled_one_where_it_is_installed(
    installed: str, builds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The directory that a process starts in comes before whatever is installed.
    (tmp_path / "purgatory.py").write_text(installed)
    monkeypatch.setattr("benchmarks.builds.ROOT", tmp_path)
    assert builds_at_hand() == builds
