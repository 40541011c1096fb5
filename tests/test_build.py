"""The tests run on the build that was asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import purgatory
import purgatory._core.watchers


def test_compiled_is_true_when_the_core_is_no_python_file() -> None:
    interpreted = Path(purgatory._core.watchers.__file__ or "").suffix == ".py"
    assert purgatory.COMPILED is not interpreted


def test_the_build_under_test_is_the_one_asked_for() -> None:
    assert purgatory.COMPILED is (os.environ.get("PURGATORY_REQUIRE_COMPILED") == "1")


@pytest.mark.skipif(purgatory.COMPILED, reason="only an interpreted core can be refused")
def test_an_interpreted_core_is_refused_where_a_compiled_one_is_required() -> None:
    refused = subprocess.run(
        [sys.executable, "-c", "import purgatory"],
        env={**os.environ, "PURGATORY_REQUIRE_COMPILED": "1"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert "ImportError: PURGATORY_REQUIRE_COMPILED is set, but the core" in refused.stderr
