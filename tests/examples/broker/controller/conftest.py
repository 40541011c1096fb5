"""A controller on a manual clock."""

import pytest

from examples.broker.controller.controller import Controller
from examples.broker.controller.settings import ClusterDefaults
from purgatory.testing import ManualClock
from tests.examples.broker.controller.controlled_cluster import registration


@pytest.fixture
def controller(clock: ManualClock) -> Controller:
    """A controller whose broker sessions last 9 seconds."""
    sessions, images = clock.purgatory("broker session"), clock.purgatory("image")
    return Controller(ClusterDefaults(broker_session_timeout=9), sessions=sessions, images=images)


@pytest.fixture
def three(controller: Controller) -> Controller:
    """A cluster of three brokers."""
    for broker_id in range(3):
        controller.register(registration(broker_id))
    return controller
