"""Members that fail or hang are removed at their session timeout; their commits stay."""

import pytest

from examples.broker.group.group import GroupState
from tests.examples.broker.live.groups.live_group import PARTITIONS, LiveGroup, Snapshot
from tests.examples.broker.live.live_cluster import PATIENCE, until

pytestmark = pytest.mark.real_time

# Seconds.
SESSION = 3.0


def beat(group: LiveGroup, name: str) -> float:
    """Wait for a heartbeat of the member; return a time shortly before it."""
    first = last = group.seen()
    while True:
        snapshot = group.seen()
        if snapshot.sessions[name] != first.sessions[name]:
            return last.at
        assert snapshot.at < first.at + PATIENCE, snapshot
        last = snapshot


def removed(group: LiveGroup, name: str) -> Snapshot:
    """Wait until the member is removed; return the group's state."""
    found = until(lambda: None if name in (snapshot := group.seen()).member_ids else snapshot)
    assert found is not None
    return found


def test_a_killed_member_is_removed_after_its_session_timeout_and_not_before(group: LiveGroup) -> None:
    failing = group.join("failing", session_timeout=SESSION)
    others = [group.join(name) for name in ("ann", "ben")]
    before = group.settle(failing, *others)
    alive = beat(group, "failing")
    failing.kill()
    # Its closed connections do not change the group.
    assert group.seen().state is GroupState.STABLE
    after = removed(group, "failing")
    assert SESSION <= after.at - alive < SESSION + PATIENCE
    assert group.settle(*others).generation_id > before.generation_id
    assert [len(member.partitions) for member in others] == [3, 3]
    assert not group.shared()


def test_a_hanging_member_is_removed_and_rejoins_with_another_id(group: LiveGroup) -> None:
    failing = group.join("failing", session_timeout=SESSION)
    other = group.join("ann")
    before = group.settle(failing, other)
    alive = beat(group, "failing")
    failing.suspend()
    after = removed(group, "failing")
    assert SESSION <= after.at - alive < SESSION + PATIENCE
    until(lambda: len(other.partitions) == PARTITIONS)
    failing.resume()
    again = group.settle(failing, other)
    assert again.member_ids["ann"] == before.member_ids["ann"]
    assert again.member_ids["failing"] != before.member_ids["failing"]


def test_a_successor_continues_from_the_committed_offsets(group: LiveGroup) -> None:
    failing, other = group.join("failing", session_timeout=SESSION), group.join("ann")
    group.settle(failing, other)
    lost = failing.partitions
    group.produce(4)
    group.until_read(failing, offsets=[0, 1, 2, 3])
    failing.commit()
    group.produce(3)
    until(lambda: all(failing.reads_of(partition)[-1] == 6 for partition in lost))
    failing.kill()
    group.produce(2)
    group.settle(other)
    until(lambda: all(other.reads_of(partition)[-1:] == [8] for partition in range(PARTITIONS)))
    # Records that were read but not committed are read again, committed ones are not.
    assert all(other.reads_of(partition) == [4, 5, 6, 7, 8] for partition in lost)
    assert all(set(other.reads_of(partition)) == set(range(9)) for partition in set(range(PARTITIONS)) - lost)
    assert group.offsets() == dict.fromkeys(lost, 4)
    other.commit()
    assert group.offsets() == dict.fromkeys(range(PARTITIONS), 9)
