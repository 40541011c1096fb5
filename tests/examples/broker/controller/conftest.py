"""A controller on a manual clock."""

import pytest

from examples.broker.controller.controller import Controller
from examples.broker.controller.settings import ClusterDefaults
from purgatory.testing import ManualClock


@pytest.fixture
def controller(clock: ManualClock) -> Controller:
    """A controller whose broker sessions last 9 seconds."""
    sessions, images = clock.purgatory("broker session"), clock.purgatory("image")
    return Controller(ClusterDefaults(broker_session_timeout=9), sessions=sessions, images=images)
