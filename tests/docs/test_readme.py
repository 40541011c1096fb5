"""The README is short, and the commands, modules and files that it names exist."""

from __future__ import annotations

import re

from tests.docs.programs import ROOT

README = (ROOT / "README.md").read_text()


def test_the_readme_stays_under_200_lines() -> None:
    assert len(README.splitlines()) < 200


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))

    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, flags=re.MULTILINE))
    assert {"demo", "test", "docs"} <= named <= targets


def test_every_module_that_is_run_exists() -> None:
    modules = re.findall(r"`python -m ([\w.]+)", README)

    assert len(modules) >= 4
    for module in modules:
        path = ROOT.joinpath(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
