"""What the tests of the benchmarks share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _collections_look_at_what_is_measured_alone() -> Iterator[None]:
    """Measurements collect garbage first. Beside all that tests import, that would take longest."""
    gc.freeze()
    yield
    gc.unfreeze()
