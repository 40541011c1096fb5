"""How long the service waits for a target that it does not know, in virtual time."""

from __future__ import annotations

from typing import cast

import anyio
import pytest

from examples.delayed.cancellations import Cancellations
from examples.delayed.forwarder import Forwarder, Statistics
from examples.delayed.producer import Producer
from examples.delayed.request import ProducerRecord, Request
from examples.delayed.settings import Topics
from purgatory.testing import VirtualTimeLoop

REQUEST = Request("0-1", 5, "orders", b"key", b"value", ())


class Cluster(Producer):
    """Answers after `seconds`. The target appears at the time `appears`."""

    def __init__(self, seconds: float, appears: float) -> None:
        self.looks = 0
        self.topics: list[str] = []
        self._seconds = seconds
        self._appears = appears

    async def knows(self, topic: str) -> bool:
        self.looks += 1
        appeared = anyio.current_time() >= self._appears
        await anyio.sleep(self._seconds)
        return appeared

    async def send(self, record: ProducerRecord) -> int:
        self.topics.append(record.topic)
        return 0


def forwarding(cluster: Cluster) -> Forwarder:
    return Forwarder(cluster, cast("Cancellations", None), Topics(), Statistics())


@pytest.mark.parametrize(("seconds", "appears"), [(60.0, 0.0), (60.0, 30.0), (0.0, 4.9), (4.0, 4.9)])
async def test_a_target_is_not_missing_because_the_cluster_answers_late(
    virtual_time: VirtualTimeLoop, seconds: float, appears: float
) -> None:
    """An instance that was paused or cut off hears nothing for a while."""
    cluster = Cluster(seconds, anyio.current_time() + appears)
    await forwarding(cluster).forward(REQUEST)
    assert cluster.topics == ["orders"]


async def test_a_target_is_missing_when_the_cluster_says_so_after_five_seconds(
    virtual_time: VirtualTimeLoop,
) -> None:
    start = anyio.current_time()
    cluster = Cluster(0.01, start + 40)
    forwarder = forwarding(cluster)
    await forwarder.forward(REQUEST)
    assert cluster.topics == ["delayed-rejected"]
    assert 5 <= anyio.current_time() - start < 5.2
    # The next record does not wait for it.
    looks = cluster.looks
    await forwarder.forward(REQUEST)
    assert (cluster.looks, cluster.topics) == (looks, ["delayed-rejected"] * 2)
    await anyio.sleep(36)
    await forwarder.forward(REQUEST)
    assert cluster.topics[2:] == ["orders"]
