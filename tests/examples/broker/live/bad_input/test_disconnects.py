"""Clients that disconnect while a request is pending: the operation is cancelled."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4 import HeartbeatRequest
from kio.schema.sync_group.v5 import SyncGroupRequest
from kio.schema.types import GroupId

from examples.broker.cluster import Cluster
from examples.broker.protocol.apis import JOIN_GROUP
from tests.examples.broker.live.bad_input.raw_client import RawClient
from tests.examples.broker.live.bad_input.valid_requests import (
    FOLLOWER,
    INT32_MAX,
    LEADER,
    REPLICATED_TOPIC,
    fetch_request,
    join_request,
    pending_test_fetches,
    produce_request,
    produced,
)
from tests.examples.broker.live.live_cluster import LiveCluster
from tests.examples.broker.protocol.wire_messages import request_frame, with_size
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

CLIENTS = 20
LEAVE = pytest.mark.parametrize("leave", [RawClient.go, RawClient.vanish])
Leave = Callable[[RawClient], None]


def waiting(cluster: Cluster, purgatory: str) -> int:
    """Count the pending operations in the purgatories of that name, of all brokers."""
    return sum(purgatories[purgatory].pending for purgatories in cluster.statistics().values())


def cancelled(cluster: Cluster, purgatory: str) -> int:
    """Count the cancelled operations of the purgatories of that name since the start."""
    return sum(purgatories[purgatory].cancelled for purgatories in cluster.statistics().values())


def until_deserted(cluster: LiveCluster, group: str) -> None:
    """Wait until all members of the group have expired."""
    cluster.until(lambda running: not running.nodes[LEADER].groups.describe_group(group).members)


def everybody(stack: ExitStack, address: tuple[str, int], request: Any) -> list[RawClient]:
    """Connect many clients that send the same request."""
    clients = [stack.enter_context(RawClient.connected(address)) for _ in range(CLIENTS)]
    for client in clients:
        client.send(with_size(request_frame(request)))
    return clients


@LEAVE
def test_a_disconnect_during_a_fetch_cancels_it(
    shared_cluster: LiveCluster, address: tuple[str, int], leave: Leave
) -> None:
    before = shared_cluster.look(lambda cluster: cancelled(cluster, "fetch"))
    with ExitStack() as stack:
        clients = everybody(stack, address, fetch_request(max_wait_ms=INT32_MAX, min_bytes=1 << 20))
        shared_cluster.until(lambda cluster: len(pending_test_fetches(cluster)) == CLIENTS)
        for client in clients:
            leave(client)
        shared_cluster.until(lambda cluster: not pending_test_fetches(cluster))
    assert shared_cluster.look(lambda cluster: cancelled(cluster, "fetch")) >= before + CLIENTS


@LEAVE
def test_a_disconnect_during_a_produce_cancels_its_wait(
    shared_cluster: LiveCluster, address: tuple[str, int], leave: Leave
) -> None:
    request = produce_request(wire_batch(b"value"), REPLICATED_TOPIC, timeout_ms=INT32_MAX)
    before = shared_cluster.look(lambda cluster: cancelled(cluster, "produce"))
    shared_cluster.pause_follower(FOLLOWER)
    try:
        with ExitStack() as stack:
            clients = everybody(stack, address, request)
            shared_cluster.until(lambda cluster: waiting(cluster, "produce") >= CLIENTS)
            for client in clients:
                leave(client)
            shared_cluster.until(lambda cluster: not waiting(cluster, "produce"))
            assert shared_cluster.look(lambda cluster: cancelled(cluster, "produce")) == before + CLIENTS
    finally:
        shared_cluster.resume_follower(FOLLOWER)
    # Their records are appended nevertheless, and the next client is served.
    with RawClient.connected(address) as client:
        answer = produced(client, wire_batch(b"value"), topic=REPLICATED_TOPIC)
        assert (answer.error_code, answer.base_offset % (CLIENTS + 1)) == (ErrorCode.none, CLIENTS)


@LEAVE
def test_members_that_disconnect_during_a_join_expire(
    shared_cluster: LiveCluster, address: tuple[str, int], leave: Leave
) -> None:
    group = f"join-{leave.__name__}"
    with ExitStack() as stack:
        members = [stack.enter_context(RawClient.connected(address)) for _ in range(CLIENTS)]
        for member in members:
            newcomer = member.ask(join_request(group)).member_id
            member.send(with_size(request_frame(join_request(group, member_id=newcomer))))
        shared_cluster.until(lambda cluster: waiting(cluster, "join"))
        for member in members:
            leave(member)
    until_deserted(shared_cluster, group)


@LEAVE
def test_members_that_disconnect_during_a_sync_expire(
    shared_cluster: LiveCluster, address: tuple[str, int], leave: Leave
) -> None:
    group = f"sync-{leave.__name__}"
    with RawClient.connected(address) as one, RawClient.connected(address) as other:
        members = {client: client.ask(join_request(group)).member_id for client in (one, other)}
        for client, member_id in members.items():
            client.send(with_size(request_frame(join_request(group, member_id=member_id))))
        joined = {client: client.response(JOIN_GROUP) for client in members}
        (leader,) = (client for client, answer in joined.items() if answer.members)
        assert len(joined[leader].members) == len(members)
        (follower,) = members.keys() - {leader}
        sync = SyncGroupRequest(
            group_id=GroupId(group),
            generation_id=joined[follower].generation_id,
            member_id=members[follower],
            assignments=(),
        )
        follower.send(with_size(request_frame(sync)))
        # The answer to a later request shows that the broker has read the earlier one.
        heartbeat = HeartbeatRequest(
            group_id=GroupId(group),
            generation_id=joined[leader].generation_id,
            member_id=members[leader],
        )
        assert leader.ask(heartbeat).error_code is ErrorCode.none
        assert shared_cluster.look(lambda cluster: waiting(cluster, "sync")) == 1
        leave(follower)
        leave(leader)
    until_deserted(shared_cluster, group)
