"""Members that die or hang are removed after their session timeout, not before; what they committed stays."""

import pytest

from examples.broker.group.group import GroupState
from tests.examples.broker.live.groups.live_group import PARTITIONS, LiveGroup, Snapshot
from tests.examples.broker.live.live_cluster import PATIENCE, until

pytestmark = pytest.mark.real_time

# Seconds.
SESSION = 1.0


def beat(group: LiveGroup, name: str) -> float:
    """Wait for a sign of life; a moment at which it had not been given yet."""
    first = last = group.seen()
    while True:
        snapshot = group.seen()
        if snapshot.heartbeats[name] != first.heartbeats[name]:
            return last.at
        assert snapshot.at < first.at + PATIENCE, snapshot
        last = snapshot


def removed(group: LiveGroup, name: str) -> Snapshot:
    """The group as soon as it is without the member."""
    found = until(lambda: None if name in (snapshot := group.seen()).member_ids else snapshot)
    assert found is not None
    return found


def test_a_killed_member_is_removed_after_its_session_timeout_and_not_before(group: LiveGroup) -> None:
    victim = group.join("victim", session_timeout=SESSION)
    others = [group.join(name) for name in ("ann", "ben")]
    before = group.settle(victim, *others)
    alive = beat(group, "victim")
    victim.kill()
    # Its connections are gone, and that changes nothing.
    assert group.seen().state is GroupState.STABLE
    after = removed(group, "victim")
    assert SESSION <= after.at - alive < SESSION + PATIENCE
    assert group.settle(*others).generation_id > before.generation_id
    assert [len(member.partitions) for member in others] == [3, 3]
    assert not group.shared()


def test_a_hanging_member_is_removed_and_rejoins_with_another_id(group: LiveGroup) -> None:
    victim = group.join("victim", session_timeout=SESSION)
    other = group.join("ann")
    before = group.settle(victim, other)
    alive = beat(group, "victim")
    victim.suspend()
    after = removed(group, "victim")
    assert SESSION <= after.at - alive < SESSION + PATIENCE
    until(lambda: len(other.partitions) == PARTITIONS)
    victim.resume()
    again = group.settle(victim, other)
    assert again.member_ids["ann"] == before.member_ids["ann"]
    assert again.member_ids["victim"] != before.member_ids["victim"]


def test_a_successor_continues_from_the_committed_offsets(group: LiveGroup) -> None:
    victim, other = group.join("victim", session_timeout=SESSION), group.join("ann")
    group.settle(victim, other)
    lost = victim.partitions
    group.produce(4)
    until(lambda: all(victim.reads_of(partition) == [0, 1, 2, 3] for partition in lost))
    victim.commit()
    group.produce(3)
    until(lambda: all(victim.reads_of(partition)[-1] == 6 for partition in lost))
    victim.kill()
    group.produce(2)
    group.settle(other)
    until(lambda: all(other.reads_of(partition)[-1:] == [8] for partition in range(PARTITIONS)))
    # What was read but not committed is read again, and what was committed is not.
    assert all(other.reads_of(partition) == [4, 5, 6, 7, 8] for partition in lost)
    assert all(set(other.reads_of(partition)) == set(range(9)) for partition in set(range(PARTITIONS)) - lost)
    assert group.offsets() == dict.fromkeys(lost, 4)
    other.commit()
    assert group.offsets() == dict.fromkeys(range(PARTITIONS), 9)
