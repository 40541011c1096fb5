"""`make serve` says what it does, and installs no more than the service needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.examples.longpoll.process import ROOT


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_make_serve_installs_what_the_service_needs_and_says_so(tmp_path: Path) -> None:
    places = [f"VENV={tmp_path / 'venv'}", f"COMPILED_TREE={tmp_path / 'compiled'}"]
    command = ["make", "--dry-run", "serve", *places]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    steps = [line for line in printed.splitlines() if line.startswith("echo ")]
    # Two steps at a time, so that they come in any order.
    done = sorted(step.split()[1].strip('"') for step in steps)
    assert done == ["Building", "Installing", "Installing", "Making"]
    installs = [
        line for line in printed.splitlines() if "pip install" in line and "constraints.txt -r" in line
    ]
    assert {line.partition("pyproject.toml ")[2] for line in installs} == {
        "--group build",
        "--extra postgres --extra uvloop --extra web --group longpoll",
    }
