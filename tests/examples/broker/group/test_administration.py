"""Groups as administrators see them, and the partition of a group."""

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.config import GroupConfig
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.group import Group, GroupState
from examples.broker.group.offsets import CommittedOffset
from examples.broker.group.requests import CommitRequest, MemberDescription
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.group.conftest import Coordinate
from tests.examples.broker.group.group_client import (
    GROUP,
    Client,
    MemoryLog,
    form_group,
    start,
    stored,
    waiting,
)

EVENTS = TopicPartition("events", 0)


async def test_a_stable_group_is_described_with_its_assignments(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator, "reader", instance="one")
    await form_group(client)
    described = coordinator.describe_group(GROUP)
    assert (described.state, described.protocol_type, described.protocol_name) == (
        "Stable",
        "consumer",
        "range",
    )
    assert described.members == (
        MemberDescription(client.identity, "reader", "", b"subscription", client.member_id.encode()),
    )


async def test_a_new_group_is_described_without_assignments(
    coordinator: GroupCoordinator,
) -> None:
    client = Client(coordinator)
    joining = await start(client.join())
    described = coordinator.describe_group(GROUP)
    assert (described.state, described.protocol_name) == ("PreparingRebalance", "")
    assert [(member.metadata, member.assignment) for member in described.members] == [(b"", b"")]
    await joining
    assert coordinator.describe_group(GROUP).state == "CompletingRebalance"


async def test_a_group_that_rebalances_again_is_described_with_its_latest_assignments(
    coordinator: GroupCoordinator,
) -> None:
    client = Client(coordinator)
    await form_group(client)
    (stable,) = coordinator.describe_group(GROUP).members
    joining = await start(client.join())
    (described,) = coordinator.describe_group(GROUP).members
    assert (described.metadata, described.assignment) == (b"", stable.assignment)
    assert stable.assignment
    await joining


async def test_a_group_that_does_not_exist_is_described_as_dead(coordinator: GroupCoordinator) -> None:
    assert coordinator.describe_group("nothing").state == "Dead"


async def test_groups_are_listed_by_their_states(coordinator: GroupCoordinator) -> None:
    await coordinator.commit_offsets(CommitRequest("commits", {EVENTS: CommittedOffset(1)}))
    await form_group(Client(coordinator))
    listed = {group.group_id: group.state for group in coordinator.list_groups()}
    assert listed == {"commits": "Empty", GROUP: "Stable"}
    assert [group.group_id for group in coordinator.list_groups(["stable", "Dead"])] == [GROUP]


async def test_a_deleted_group_and_its_offsets_are_unknown_to_the_next_coordinator(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    client = Client(coordinator)
    await form_group(client)
    await client.commit(EVENTS, 7)
    client.leave()
    assert (await Client(coordinator).join_once()).error is ErrorCode.member_id_required
    await coordinator.delete_group(GROUP)
    assert waiting(coordinator) == {}
    assert coordinator.list_groups() == []
    assert coordinator.fetch_offsets(GROUP) == {}
    assert stored(log, coordinator.partition_for(GROUP)) == {}


async def test_a_pending_commit_does_not_restore_a_deleted_group(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    await Client(coordinator).commit(EVENTS, 7)
    log.appended.clear()
    other = TopicPartition("events", 1)
    commits = [await start(Client(coordinator).commit(entry, 8)) for entry in (EVENTS, other)]
    deletion = await start(coordinator.delete_group(GROUP))
    log.appended.set()
    await deletion
    assert [await commit for commit in commits] == [ErrorCode.none, ErrorCode.none]
    assert coordinator.list_groups() == []
    assert stored(log, coordinator.partition_for(GROUP)) == {}


async def test_only_empty_groups_that_exist_can_be_deleted(coordinator: GroupCoordinator) -> None:
    with pytest.raises(ApiError, match="GROUP_ID_NOT_FOUND"):
        await coordinator.delete_group(GROUP)
    client = Client(coordinator)
    joining = await start(client.join())
    with pytest.raises(ApiError, match="NON_EMPTY_GROUP"):
        await coordinator.delete_group(GROUP)
    await joining
    await client.sync()
    with pytest.raises(ApiError, match="NON_EMPTY_GROUP"):
        await coordinator.delete_group(GROUP)


async def test_a_deletion_that_the_log_refuses_is_an_error(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    await Client(coordinator).commit(EVENTS, 7)
    log.error = ErrorCode.not_leader_or_follower
    with pytest.raises(ApiError, match="NOT_COORDINATOR"):
        await coordinator.delete_group(GROUP)


async def test_administrators_get_not_coordinator_from_another_broker(coordinate: Coordinate) -> None:
    elsewhere = await coordinate(GroupConfig())
    with pytest.raises(ApiError, match="NOT_COORDINATOR"):
        elsewhere.describe_group(GROUP)
    assert elsewhere.list_groups() == []


async def test_a_groups_partition_is_the_same_as_in_kafka(coordinator: GroupCoordinator) -> None:
    # The results of Java's String.hashCode. The fourth key has two UTF-16 units.
    codes = {"": 0, "Aa": 2112, "hello": 99162322, "\U0001f600": 1772899, "billing": -109829509}
    for group_id, code in codes.items():
        assert coordinator.partition_for(group_id) == abs(code) % 50
    assert coordinator.partition_for("polygenelubricants") == 0, "as -2**31 has no absolute value there"


@pytest.mark.parametrize("state", GroupState)
def test_a_group_moves_only_where_the_protocol_lets_it(state: GroupState) -> None:
    allowed = {
        GroupState.EMPTY: {GroupState.PREPARING_REBALANCE, GroupState.DEAD},
        GroupState.PREPARING_REBALANCE: {
            GroupState.COMPLETING_REBALANCE,
            GroupState.EMPTY,
            GroupState.DEAD,
        },
        GroupState.COMPLETING_REBALANCE: {
            GroupState.STABLE,
            GroupState.PREPARING_REBALANCE,
            GroupState.DEAD,
        },
        GroupState.STABLE: {GroupState.PREPARING_REBALANCE, GroupState.DEAD},
        GroupState.DEAD: set(),
    }
    reached = set()
    for wanted in GroupState:
        group = Group(GROUP)
        group.state = state
        try:
            group.transition(wanted)
        except ValueError:
            continue
        reached.add(wanted)
    assert reached == allowed[state]


async def test_every_part_has_a_one_line_repr(coordinator: GroupCoordinator) -> None:
    await form_group(Client(coordinator))
    assert repr(coordinator) == "<GroupCoordinator of broker 1: <GroupStore 1 groups in 50 partitions>>"
    assert repr(Group("g")) == "<Group 'g' Empty generation 0, 0 members>"
