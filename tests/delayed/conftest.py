"""A simulated disk, a wall clock over virtual time, and a service that remembers what was delivered."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from purgatory.testing import VirtualTimeLoop
from tests.delayed.service import Service, WallClock
from tests.delayed.storage.simulated_disk import SimulatedDisk


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def wall(virtual_time: VirtualTimeLoop) -> WallClock:
    return WallClock(virtual_time)


@pytest.fixture
def service(disk: SimulatedDisk, wall: WallClock) -> Service:
    return Service(disk, wall)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if "delayed" in thread.name] == []
