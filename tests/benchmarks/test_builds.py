"""How a process comes to have the build of the core that it is to measure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.builds import COMPILED, ROOT, builds_at_hand, environment


def path(environment: Mapping[str, str]) -> list[str]:
    return [entry for entry in environment["PYTHONPATH"].split(os.pathsep) if entry]


def test_the_interpreted_build_comes_from_the_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/elsewhere", str(COMPILED), str(ROOT)]))
    assert path(environment("interpreted")) == [str(ROOT), "/elsewhere"]


def test_the_compiled_build_is_not_hidden_by_the_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([".", "/elsewhere"]))
    assert path(environment("compiled")) == [str(COMPILED), str(ROOT), "/elsewhere"]
    assert environment("compiled")["PYTHONSAFEPATH"] == "1"


def test_whatever_else_is_set_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE_OF_THE_TEST", "plain")
    assert environment("compiled")["LANGUAGE_OF_THE_TEST"] == "plain"


@pytest.mark.parametrize(
    ("installed", "builds"),
    [
        ("COMPILED = True", ("compiled", "interpreted")),
        ("COMPILED = False", ("interpreted",)),
        ("raise ImportError", ("interpreted",)),
    ],
)
def test_the_interpreted_build_is_always_at_hand_the_compiled_one_where_it_is_built(
    installed: str, builds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "purgatory.py").write_text(installed)
    monkeypatch.setattr("benchmarks.builds.COMPILED", tmp_path)
    assert builds_at_hand() == builds
