"""Groups as administrators see them, and the partition of a group."""

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.group import Group
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.group.group_client import (
    EVENTS,
    GROUP,
    Client,
    MemoryLog,
    send,
    start,
    stored,
    waiting,
)


async def test_administrators_see_a_protocol_while_the_group_is_stable_and_the_latest_assignments(
    coordinator: GroupCoordinator,
) -> None:
    def described() -> tuple[str, str | None, list[bytes]]:
        group = coordinator.describe_group(GROUP)
        return (
            group.state.value,
            group.assigned_protocol,
            [member.assignment for member in group.members.values()],
        )

    assert described() == ("Dead", None, [])
    client = Client(coordinator)
    joining = await start(client.join())
    assert described() == ("PreparingRebalance", None, [b""])
    await joining
    assert described() == ("CompletingRebalance", None, [b""])
    await client.sync()
    assert described() == ("Stable", "range", [client.member_id.encode()])
    await client.join()
    assert described() == ("CompletingRebalance", None, [client.member_id.encode()])


async def test_a_deleted_group_and_its_offsets_are_unknown_to_the_next_coordinator(
    member: Client, log: MemoryLog
) -> None:
    coordinator = member.coordinator
    await member.commit(EVENTS, 7)
    member.leave()
    assert await send(Client(coordinator), "join") is ErrorCode.member_id_required
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


async def test_a_deletion_that_the_log_refuses_is_an_error(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    await Client(coordinator).commit(EVENTS, 7)
    log.error = ErrorCode.not_leader_or_follower
    assert await send(Client(coordinator), "delete") is ErrorCode.not_coordinator


async def test_every_part_has_a_one_line_repr(member: Client) -> None:
    assert repr(member.coordinator) == (
        "<GroupCoordinator of broker 1: <GroupStore 1 groups in 50 partitions>>"
    )
    assert repr(Group("g")) == "<Group 'g' Empty generation 0, 0 members>"
