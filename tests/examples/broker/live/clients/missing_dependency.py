"""Clients outside of Python, which may not be installed."""

import os
from typing import NoReturn

import pytest


def skip_for_missing(what: str) -> NoReturn:
    """Skip the test because of a missing client; in CI (when CI is set), fail it instead."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}: in CI, this test may not be skipped")
    pytest.skip(what)
