"""The coordinator of a group fails, and another broker continues."""

import pytest

from tests.examples.broker.live.clients.confluent_client import Confluent
from tests.examples.broker.live.clients.python_clients import Client
from tests.examples.broker.live.groups.live_group import PARTITIONS, LiveGroup
from tests.examples.broker.live.live_cluster import LiveCluster, until

pytestmark = pytest.mark.real_time


def test_the_group_continues_with_another_coordinator_in_the_same_generation(
    cluster: LiveCluster, client: Client
) -> None:
    with LiveGroup.running(cluster, client, "handed-over") as group:
        members = [group.join("ann"), group.join("ben")]
        before = group.settle(*members)
        group.produce(3)
        for member in members:
            group.until_read(member, offsets=[0, 1, 2])
            member.commit()
        assert group.offsets() == dict.fromkeys(range(PARTITIONS), 3)

        dead = group.coordinator
        cluster.kill(dead)
        handed_over = group.settle(*members)
        assert group.coordinator != dead
        assert (handed_over.generation_id, handed_over.member_ids) == (
            before.generation_id,
            before.member_ids,
        )
        assert group.offsets() == dict.fromkeys(range(PARTITIONS), 3)

        # The members find the new coordinator, and it knows them.
        until(lambda: all(end > handed_over.sessions[name] for name, end in group.seen().sessions.items()))
        assert group.settle(*members).generation_id == before.generation_id
        group.produce(2)
        for member in members:
            group.until_read(member, offsets=[0, 1, 2, 3, 4])
            member.commit()
        assert group.offsets() == dict.fromkeys(range(PARTITIONS), 5)

        # The group can rebalance, and no member reads from the start.
        members.append(group.join("cid"))
        assert group.settle(*members).generation_id > before.generation_id
        group.produce(1)
        until(lambda: all(m.reads_of(p)[-1:] == [5] for m in members for p in m.partitions))
        assert all(members[2].reads_of(p) == [5] for p in members[2].partitions)


@pytest.mark.parametrize("client", [Confluent()])
def test_a_member_that_fails_with_its_coordinator_is_removed_by_the_next_one(
    cluster: LiveCluster, client: Client
) -> None:
    with LiveGroup.running(cluster, client, "handed-over") as group:
        failing, other = group.join("failing", session_timeout=3.0), group.join("ann")
        before = group.settle(failing, other)
        failing.kill()
        cluster.kill(group.coordinator)
        assert group.settle(other).generation_id > before.generation_id
