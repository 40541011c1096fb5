"""Which build of the core the tests are run on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import purgatory
import purgatory.watchers


def test_compiled_tells_what_is_loaded() -> None:
    interpreted = Path(purgatory.watchers.__file__ or "").suffix == ".py"
    assert purgatory.COMPILED is not interpreted


def test_the_build_under_test_is_the_one_asked_for() -> None:
    asked_for = os.environ.get("PURGATORY_BUILD")
    if asked_for is None:
        pytest.skip("PURGATORY_BUILD asks for neither the compiled nor the interpreted build")

    assert asked_for == ("compiled" if purgatory.COMPILED else "interpreted")
