"""The APIs of groups: requests and responses."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Final

import pytest
from kio.schema.find_coordinator.v6 import FindCoordinatorRequest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupConfig, GroupCoordinator
from examples.broker.handlers.group_membership import find_coordinator
from examples.broker.metadata import BrokerRegistration
from examples.broker.protocol import apis
from examples.broker.protocol.apis import RequestContext
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.group_client import Hosts, MemoryLog, lead
from tests.examples.broker.handlers.plain_requests import ask
from tests.examples.broker.protocol.plain_messages import Plain, message, plain

READERS, ELSEWHERE = "readers", "led elsewhere"


@pytest.fixture
async def groups(virtual_time: VirtualTimeLoop) -> AsyncIterator[GroupCoordinator]:
    """A coordinator of the group READERS, but not of the other group."""
    hosts = Hosts(MemoryLog())
    coordinator = await hosts.coordinate(GroupConfig())
    await lead(coordinator, coordinator.partition_for(READERS))
    yield coordinator
    await hosts.aclose()


async def join(
    groups: GroupCoordinator, member_id: str = "", *, version: int | None = None, **values: Plain
) -> Plain:
    asked: dict[str, Plain] = {
        "group_id": READERS,
        "session_timeout": 10_000,
        "rebalance_timeout": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"subscription"}],
    }
    return await ask(groups, apis.JOIN_GROUP, version=version, **asked | values)


async def sync(groups: GroupCoordinator, joined: Plain) -> Plain:
    return await ask(
        groups,
        apis.SYNC_GROUP,
        group_id=READERS,
        generation_id=joined["generation_id"],
        member_id=joined["member_id"],
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            {"member_id": member["member_id"], "assignment": b"assigned"} for member in joined["members"]
        ],
    )


async def stable(groups: GroupCoordinator) -> Plain:
    joined = await join(groups, (await join(groups))["member_id"])
    assert (await sync(groups, joined))["error_code"] == "none"
    return joined


async def beat(groups: GroupCoordinator, member_id: str, group_id: str = READERS) -> str:
    answer = await ask(groups, apis.HEARTBEAT, group_id=group_id, generation_id=1, member_id=member_id)
    return str(answer["error_code"])


async def leave(groups: GroupCoordinator, *member_ids: str, group_id: str = READERS) -> Plain:
    members = [{"member_id": member_id} for member_id in member_ids]
    return await ask(groups, apis.LEAVE_GROUP, group_id=group_id, members=members)


async def commit(
    groups: GroupCoordinator, *offsets: int, version: int | None = None, generation_id: int = -1
) -> list[str]:
    """Commit one offset for each partition, and return the error of each."""
    partitions = [
        {"partition_index": index, "committed_offset": offset} for index, offset in enumerate(offsets)
    ]
    answer = await ask(
        groups,
        apis.OFFSET_COMMIT,
        version=version,
        group_id=READERS,
        generation_id_or_member_epoch=generation_id,
        topics=[{"name": "events", "partitions": partitions}],
    )
    (topic,) = answer["topics"]
    return [partition["error_code"] for partition in topic["partitions"]]


async def delete_offsets(groups: GroupCoordinator, *indexes: int, group_id: str = READERS) -> Plain:
    topics = [{"name": "events", "partitions": [{"partition_index": index} for index in indexes]}]
    return await ask(groups, apis.OFFSET_DELETE, group_id=group_id, topics=topics)


async def fetched(groups: GroupCoordinator, group_id: str, indexes: list[int] | None) -> Plain:
    topics = None if indexes is None else [{"name": "events", "partition_indexes": indexes}]
    asked = [{"group_id": group_id, "topics": topics}]
    (group,) = (await ask(groups, apis.OFFSET_FETCH, groups=asked))["groups"]
    return group


async def coordinator_of(group_id: str) -> BrokerRegistration:
    if group_id == ELSEWHERE:
        raise ApiError(ErrorCode.coordinator_not_available, "nobody leads it")
    return BrokerRegistration(2, "10.0.0.2", 9094)


async def coordinators(key_type: int, *keys: str) -> Plain:
    context = RequestContext(apis.FIND_COORDINATOR, 6, 1, "reader", "10.0.0.1")
    values = {"key_type": key_type, "coordinator_keys": keys}
    request = message(FindCoordinatorRequest, values)
    return plain(await find_coordinator(coordinator_of, context, request))["coordinators"]


async def test_each_group_gets_its_coordinator_or_an_error() -> None:
    found, missing = await coordinators(0, READERS, ELSEWHERE)
    here = {"key": READERS, "node_id": 2, "host": "10.0.0.2", "port": 9094}
    assert found == here | {"error_code": "none", "error_message": ""}
    assert (missing["key"], missing["node_id"]) == (ELSEWHERE, -1)
    assert missing["error_code"] == "coordinator_not_available"
    assert "nobody leads it" in missing["error_message"]


async def test_share_groups_and_transactions_have_no_coordinator(caplog: pytest.LogCaptureFixture) -> None:
    assert [entry["error_code"] for entry in await coordinators(2, "any")] == ["invalid_request"]
    (refused,) = await coordinators(1, "any")
    assert refused["error_code"] == "transactional_id_authorization_failed"
    assert "'reader' at 10.0.0.1: this broker serves no transactions" in caplog.text


async def test_a_member_joins_syncs_sends_heartbeats_and_leaves(groups: GroupCoordinator) -> None:
    newcomer = await join(groups)
    member_id = newcomer["member_id"]
    assert newcomer["error_code"] == "member_id_required"
    assert member_id.startswith("reader-")
    joined = await join(groups, member_id)
    assert (joined["error_code"], joined["generation_id"]) == ("none", 1)
    assert (joined["protocol_type"], joined["protocol_name"]) == ("consumer", "range")
    assert joined["leader"] == joined["member_id"] == member_id
    assert joined["members"] == [
        {"member_id": member_id, "group_instance_id": None, "metadata": b"subscription"}
    ]
    synced = await sync(groups, joined)
    assert (synced["error_code"], synced["assignment"]) == ("none", b"assigned")
    assert synced["protocol_name"] == "range"
    assert await beat(groups, member_id) == "none"
    left = await leave(groups, member_id, "stranger")
    assert left["error_code"] == "none"
    assert [(entry["member_id"], entry["error_code"]) for entry in left["members"]] == [
        (member_id, "none"),
        ("stranger", "unknown_member_id"),
    ]
    assert await beat(groups, member_id) == "unknown_member_id"


async def test_clients_before_version_4_join_at_once(groups: GroupCoordinator) -> None:
    assert (await join(groups, version=3))["error_code"] == "none"


async def test_only_clients_of_version_9_may_skip_the_assignment(groups: GroupCoordinator) -> None:
    joined = await join(groups, group_instance_id="one")
    await sync(groups, joined)
    again = await join(groups, group_instance_id="one", version=8)
    assert (again["skip_assignment"], again["leader"]) == (False, joined["member_id"])
    newest = await join(groups, group_instance_id="one", version=9)
    assert (newest["skip_assignment"], newest["leader"]) == (True, newest["member_id"])


async def test_without_a_rebalance_timeout_the_session_timeout_counts(
    groups: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    await sync(groups, await join(groups, group_instance_id="one", rebalance_timeout=-1))
    joined = await join(groups, group_instance_id="two", rebalance_timeout=0)
    assert joined["error_code"] == "none"
    assert virtual_time.time() == 3 + 10


async def test_a_member_that_syncs_has_to_name_its_protocol(groups: GroupCoordinator) -> None:
    joined = await stable(groups)
    asked = {"group_id": READERS, "generation_id": 1, "member_id": joined["member_id"]}
    answers = [await ask(groups, apis.SYNC_GROUP, version=version, **asked) for version in (4, 5)]
    assert [answer["error_code"] for answer in answers] == ["none", "inconsistent_group_protocol"]


REFUSED: Final[Mapping[str, Callable[[GroupCoordinator], Coroutine[Any, Any, Plain]]]] = {
    "join": lambda groups: join(groups, group_id=ELSEWHERE),
    "sync": lambda groups: ask(
        groups, apis.SYNC_GROUP, group_id=ELSEWHERE, protocol_type="consumer", protocol_name="range"
    ),
    "leave": lambda groups: leave(groups, "m", group_id=ELSEWHERE),
    "delete offsets": lambda groups: delete_offsets(groups, 0, group_id=ELSEWHERE),
    "fetch offsets": lambda groups: fetched(groups, ELSEWHERE, [1]),
}


@pytest.mark.parametrize("request_", REFUSED)
async def test_a_request_is_refused_by_a_broker_that_does_not_coordinate(
    groups: GroupCoordinator, request_: str
) -> None:
    answer = await REFUSED[request_](groups)
    assert answer["error_code"] == "not_coordinator"
    # Old versions of OffsetFetch have an error for each partition, and none for the group.
    for topic in answer.get("topics", ()):
        (partition,) = topic["partitions"]
        assert (partition["partition_index"], partition["committed_offset"]) == (1, -1)
        assert partition["error_code"] == "not_coordinator"
    assert bool(answer.get("topics")) == (request_ == "fetch offsets")
    assert await beat(groups, "m", ELSEWHERE) == "not_coordinator"


async def test_committed_offsets_are_fetched_by_partition_or_all_at_once(groups: GroupCoordinator) -> None:
    assert await commit(groups, 7, 8, 9) == ["none", "none", "unknown_topic_or_partition"]

    async def offsets(indexes: list[int] | None) -> list[tuple[int, int, str]]:
        group = await fetched(groups, READERS, indexes)
        (topic,) = group["topics"]
        assert (group["error_code"], topic["name"]) == ("none", "events")
        fields = ("partition_index", "committed_offset", "metadata")
        return [tuple(partition[field] for field in fields) for partition in topic["partitions"]]

    assert await offsets([1, 2]) == [(1, 8, ""), (2, -1, "")]
    assert await offsets(None) == [(0, 7, ""), (1, 8, "")]


@pytest.mark.parametrize(("version", "error"), [(8, "illegal_generation"), (9, "group_id_not_found")])
async def test_a_commit_that_is_refused_is_refused_for_every_partition(
    groups: GroupCoordinator, version: int, error: str
) -> None:
    assert await commit(groups, 7, 8, generation_id=3, version=version) == [error] * 2


async def test_the_deletion_of_each_offset_is_answered(groups: GroupCoordinator) -> None:
    await commit(groups, 7, 8)
    answer = await delete_offsets(groups, 0, 2)
    assert answer["error_code"] == "none"
    assert answer["topics"][0]["partitions"] == [
        {"partition_index": 0, "error_code": "none"},
        {"partition_index": 2, "error_code": "unknown_topic_or_partition"},
    ]
    assert {entry.partition for entry in groups.fetch_offsets(READERS)} == {1}


async def test_groups_are_described_listed_and_deleted(groups: GroupCoordinator) -> None:
    joined = await stable(groups)
    answer = await ask(groups, apis.DESCRIBE_GROUPS, groups=[READERS, ELSEWHERE])
    readers, elsewhere = answer["groups"]
    assert (readers["error_code"], readers["group_state"]) == ("none", "Stable")
    assert (readers["protocol_type"], readers["protocol_data"]) == ("consumer", "range")
    assert readers["members"] == [
        {
            "member_id": joined["member_id"],
            "group_instance_id": None,
            "client_id": "reader",
            "client_host": "10.0.0.1",
            "member_metadata": b"subscription",
            "member_assignment": b"assigned",
        }
    ]
    assert (elsewhere["error_code"], elsewhere["group_state"]) == ("not_coordinator", "")

    async def listed(*states: str) -> tuple[str, list[tuple[str, str, str]]]:
        answer = await ask(groups, apis.LIST_GROUPS, states_filter=states)
        fields = ("group_id", "group_state", "protocol_type")
        return answer["error_code"], [tuple(group[field] for field in fields) for group in answer["groups"]]

    assert await listed() == ("none", [(READERS, "Stable", "consumer")])
    assert await listed("Empty") == ("none", [])
    assert await listed("stable", "Dead") == await listed()
    groups.elected((groups.partition_for(READERS) + 1) % 50)
    assert await listed() == ("coordinator_load_in_progress", [])

    async def deleted() -> list[str]:
        answer = await ask(groups, apis.DELETE_GROUPS, groups_names=[READERS, READERS])
        return [result["error_code"] for result in answer["results"]]

    assert await deleted() == ["non_empty_group"]
    await leave(groups, joined["member_id"])
    assert await deleted() == ["none"]
    assert groups.list_groups() == []
