"""Clients that are not Python's, and may not be installed."""

import os
from typing import NoReturn

import pytest


def skip_for_missing(what: str) -> NoReturn:
    """Skip the test; but where changes are judged (CI is set), everything has to be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}: in CI, this test may not be skipped")
    pytest.skip(what)
