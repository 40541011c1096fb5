"""Members join and leave: every partition always has one member, and never two."""

import pytest

from tests.examples.broker.live.groups.live_group import LiveGroup
from tests.examples.broker.live.live_cluster import until

pytestmark = pytest.mark.real_time


def test_three_members_share_the_partitions_and_leave_no_pending_operation(group: LiveGroup) -> None:
    members = [group.join(name) for name in ("ann", "ben", "cid")]
    group.settle(*members)
    assert [len(member.partitions) for member in members] == [2, 2, 2]
    assert not group.shared()
    for member in members:
        member.close()
    until(lambda: not group.cluster.waiting(), explain=group.cluster.waiting)
    statistics = group.cluster.statistics()
    assert [
        (broker_id, name, purgatories[name].pending)
        for broker_id, purgatories in statistics.items()
        for name in ("produce", "delete records", "join", "sync", "heartbeat", "topic", "elect leader")
        if purgatories[name].pending
    ] == []
    # The purgatories were in use.
    used = {
        name for purgatories in statistics.values() for name in purgatories if purgatories[name].completed
    }
    assert {"join", "sync", "heartbeat"} <= used


def test_a_member_that_joins_gets_its_share(group: LiveGroup) -> None:
    first, second = group.join("ann"), group.join("ben")
    before = group.settle(first, second)
    third = group.join("cid")
    after = group.settle(first, second, third)
    assert after.generation_id > before.generation_id
    assert [len(member.partitions) for member in (first, second, third)] == [2, 2, 2]
    assert not group.shared()


def test_the_partitions_of_a_leaving_member_go_to_the_others_at_once(group: LiveGroup) -> None:
    members = [group.join(name) for name in ("ann", "ben", "cid")]
    before = group.settle(*members)
    for left in (1, 0):
        members.pop(left).close()
        # Its session lasts longer than the test waits.
        after = group.settle(*members)
        assert after.generation_id > before.generation_id
        before = after
    assert len(members[0].partitions) == 6
    assert not group.shared()
