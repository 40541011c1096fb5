"""Static members (KIP-345): a client that returns in time keeps its assignment."""

import pytest

from tests.examples.broker.live.clients.confluent_client import Confluent
from tests.examples.broker.live.groups.live_group import LiveGroup
from tests.examples.broker.live.live_cluster import until

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize("ended", ["closed", "killed"])
def test_a_static_member_that_returns_within_its_session_causes_no_rebalance(
    group: LiveGroup, ended: str
) -> None:
    first = group.join("ann", instance_id="a")
    second = group.join("ben", instance_id="b")
    before = group.settle(first, second)
    held = first.partitions
    moves = len(second.moves)
    group.produce(2)
    group.until_read(first, offsets=[0, 1])
    first.commit()
    if ended == "closed":
        first.close()
    else:
        first.kill()

    again = group.join("ann", instance_id="a")
    after = group.settle(again, second)
    assert after.generation_id == before.generation_id
    assert again.partitions == held
    assert len(second.moves) == moves
    # It is the same member with a new id, so that the coordinator can fence the previous client.
    assert after.member_ids["ben"] == before.member_ids["ben"]
    assert after.member_ids["ann"] != before.member_ids["ann"]
    group.produce(1)
    group.until_read(again, offsets=[2])


# aiokafka sends no group instance id with its heartbeats, and kafka-python does not report that it is fenced.
@pytest.mark.parametrize("client", [Confluent()])
def test_of_two_clients_with_one_instance_id_the_earlier_one_is_fenced(group: LiveGroup) -> None:
    elder = group.join("ann", instance_id="a")
    before = group.settle(elder)
    younger = group.join("ben", instance_id="a")
    until(lambda: not elder.is_alive, explain=lambda: elder)
    elder.listen()
    assert elder.failure is not None
    assert "fenced" in elder.failure.lower()
    assert group.settle(younger).generation_id == before.generation_id
