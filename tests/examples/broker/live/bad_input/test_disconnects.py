"""Clients that disconnect while a request is pending: the operation is cancelled."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from examples.broker.cluster import Cluster
from examples.broker.protocol.apis import FETCH, PRODUCE, Api
from tests.examples.broker.live.bad_input.raw_client import RawClient, frame_of
from tests.examples.broker.live.bad_input.valid_requests import (
    FOLLOWER,
    INT32_MAX,
    REPLICATED_TOPIC,
    fetch_of,
    pending_test_fetches,
    produce_of,
)
from tests.examples.broker.live.live_cluster import LiveCluster
from tests.examples.broker.wire_batches import wire_batch
from tests.kafka.scenarios.answers import Plain

pytestmark = pytest.mark.real_time

CLIENTS = 20


def waiting(cluster: Cluster, purgatory: str) -> int:
    """Count the pending operations of clients in the purgatories of that name, of all brokers."""
    if purgatory == "fetch":
        return len(pending_test_fetches(cluster))
    return sum(purgatories[purgatory].pending for purgatories in cluster.statistics().values())


def cancelled(cluster: Cluster, purgatory: str) -> int:
    """Count the cancelled operations of the purgatories of that name since the start."""
    return sum(purgatories[purgatory].cancelled for purgatories in cluster.statistics().values())


@pytest.mark.parametrize("leave", [RawClient.go, RawClient.vanish])
@pytest.mark.parametrize(
    ("api", "values"),
    [
        (FETCH, fetch_of(max_wait=INT32_MAX, min_bytes=1 << 20)),
        (PRODUCE, produce_of(wire_batch(b"value"), REPLICATED_TOPIC, timeout=INT32_MAX)),
    ],
    ids=["fetch", "produce"],
)
def test_a_disconnect_cancels_the_wait(
    shared_cluster: LiveCluster,
    address: tuple[str, int],
    api: Api[Any, Any],
    values: Plain,
    leave: Callable[[RawClient], None],
) -> None:
    name = api.name.lower()
    before = shared_cluster.look(lambda cluster: cancelled(cluster, name))
    shared_cluster.pause_follower(FOLLOWER)
    try:
        with ExitStack() as stack:
            clients = [stack.enter_context(RawClient.connected(address)) for _ in range(CLIENTS)]
            for client in clients:
                client.send(frame_of(api, values))
            shared_cluster.until(lambda cluster: waiting(cluster, name) == CLIENTS)
            for client in clients:
                leave(client)
            shared_cluster.until(lambda cluster: not waiting(cluster, name))
        assert shared_cluster.look(lambda cluster: cancelled(cluster, name)) >= before + CLIENTS
    finally:
        shared_cluster.resume_follower(FOLLOWER)
    # Their records are appended nevertheless, and the next client is served.
    with RawClient.connected(address) as client:
        (topic,) = client.ask(PRODUCE, produce_of(wire_batch(b"value"), REPLICATED_TOPIC))["responses"]
        (answer,) = topic["partition_responses"]
        assert answer["error_code"] == "none"
        assert api is not PRODUCE or answer["base_offset"] >= CLIENTS
