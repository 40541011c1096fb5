"""Cooperative rebalancing (KIP-429): members keep reading the partitions that stay theirs."""

import pytest

from tests.examples.broker.live.clients.confluent_client import Confluent
from tests.examples.broker.live.clients.kafka_python_client import KafkaPython
from tests.examples.broker.live.groups.live_group import PARTITIONS, LiveGroup
from tests.examples.broker.live.groups.member_process import Member
from tests.examples.broker.live.live_cluster import until

pytestmark = pytest.mark.real_time


def revoked(member: Member, since: int) -> frozenset[int]:
    """Return the partitions that were revoked after the first ``since`` moves."""
    member.listen()
    return frozenset().union(*(move.partitions for move in member.moves[since:] if not move.gained))


@pytest.mark.parametrize("client", [Confluent(), KafkaPython()], ids=lambda client: client.name)
def test_only_moved_partitions_are_revoked_and_the_others_are_not_read_again(group: LiveGroup) -> None:
    elder = [group.join(name, cooperative=True) for name in ("ann", "ben")]
    before = group.settle(*elder)
    # They may have joined one after the other, with a rebalance in between.
    moves = {member.name: len(member.moves) for member in elder}
    group.produce(2)
    held = {member.name: member.partitions for member in elder}
    group.until_read(*elder, offsets=[0, 1])

    newcomer = group.join("cid", cooperative=True)
    # One generation revokes partitions, the next one assigns them.
    assert group.settle(*elder, newcomer).generation_id >= before.generation_id + 2
    assert [len(member.partitions) for member in (*elder, newcomer)] == [2, 2, 2]
    for member in elder:
        assert revoked(member, moves[member.name]) == held[member.name] - member.partitions
        assert member.partitions < held[member.name]
    assert not group.shared()

    group.produce(1)
    until(lambda: all(m.reads_of(p)[-1:] == [2] for m in (*elder, newcomer) for p in m.partitions))
    # Nothing was committed, so moved partitions are read from the start.
    for member in (*elder, newcomer):
        assert all(member.reads_of(partition) == [0, 1, 2] for partition in member.partitions)
    assert sum(len(member.partitions) for member in (*elder, newcomer)) == PARTITIONS
