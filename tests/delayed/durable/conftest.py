"""A directory for durable operations, and a shop over virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from purgatory.testing import VirtualTimeLoop
from tests.delayed.durable.shop import START, Shop


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "payments"


@pytest.fixture
def shop(virtual_time: VirtualTimeLoop) -> Shop:
    return Shop(lambda: START + virtual_time.time())
