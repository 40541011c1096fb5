"""What the README shows is true: its examples run and print what it says, and its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()

# A Python block, directly followed by a block with what it prints.
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)


def test_every_python_block_shows_what_it_prints() -> None:
    assert len(EXAMPLES) == README.count("```python") >= 2


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_an_example_prints_what_the_readme_says(code: str, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], text=True, capture_output=True, check=False
    )

    assert (done.stdout, done.stderr) == (printed, "")


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))

    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, flags=re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_every_example_and_document_that_is_named_exists() -> None:
    modules = re.findall(r"`(?:make demo`, or `)?python -m ([\w.]+)", README)
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]

    assert len(modules) >= 4
    for module in modules:
        path = ROOT.joinpath(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    for link in links:
        assert (ROOT / link.partition("#")[0]).exists(), link
