"""Groups: coordinators, members, rebalances and static members."""

from itertools import product
from typing import Final

from examples.broker.protocol.apis import (
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.members import RANGE, SESSION_TIMEOUT, Member, subscription
from tests.kafka.scenarios.scenario import scenario

BOTH: Final = (("cooperative-sticky", subscription("one")), ("range", subscription("other")))


# Coordinators


@scenario(*product(range(7), ("group", "", "ü")))
def coordinator_in_version(brokers: Brokers, version: int, group: str) -> Plain:
    brokers.coordinator("group")
    request = {"key": group} if version < 4 else {"coordinator_keys": [group]}
    answer = brokers.ask(FIND_COORDINATOR, version, **request)
    for entry in answer.get("coordinators", [answer]):
        entry["node_id"] = entry["node_id"] > 0
    return answer


@scenario(2, 7, -1)
def coordinator_of_key_type(brokers: Brokers, key_type: int) -> Plain:
    return brokers.ask(FIND_COORDINATOR, key_type=key_type, coordinator_keys=["key"])


@scenario()
def coordinator_of_a_transaction(brokers: Brokers) -> Plain:
    answer = brokers.ask(FIND_COORDINATOR, key_type=1, coordinator_keys=["key"])
    return answer["coordinators"][0]["error_code"]


@scenario()
def coordinators_of_two_groups(brokers: Brokers) -> Plain:
    brokers.coordinator("group")
    answer = brokers.ask(FIND_COORDINATOR, coordinator_keys=["group", "other", "group"])
    return [(entry["key"], entry["error_code"]) for entry in answer["coordinators"]]


@scenario()
def coordinators_of_no_group(brokers: Brokers) -> Plain:
    return brokers.ask(FIND_COORDINATOR, coordinator_keys=[])


@scenario("heartbeat", "sync", "leave", "join")
def not_the_coordinator(brokers: Brokers, request: str) -> Plain:
    group = brokers.name
    other = brokers.coordinator(group) % 3 + 1
    if request == "join":
        return brokers.ask(JOIN_GROUP, to=other, **_join(group))
    if request == "leave":
        return brokers.ask(LEAVE_GROUP, to=other, group_id=group, members=[{"member_id": "a"}])
    api = HEARTBEAT if request == "heartbeat" else SYNC_GROUP
    return brokers.ask(api, to=other, group_id=group, generation_id=1, member_id="a")


# Joining


@scenario(*range(10))
def join_in_version(brokers: Brokers, version: int) -> Plain:
    member = Member(brokers, brokers.name, version=version)
    first = member.join()
    return (first, member.join()) if first["error_code"] == "member_id_required" else first


@scenario("empty group", "short session", "long session", "unknown member", "no protocol", "empty type")
def faulty_join(brokers: Brokers, fault: str) -> Plain:
    faults: dict[str, dict[str, Plain]] = {
        "empty group": {"group_id": ""},
        "short session": {"session_timeout": 1},
        "long session": {"session_timeout": 2**31 - 1},
        "unknown member": {"member_id": "nobody"},
        "no protocol": {"protocols": []},
        "empty type": {"protocol_type": ""},
    }
    return Member(brokers, brokers.name).join(**faults[fault])


@scenario("no protocol", "empty type", "unknown member", "other protocol", "other type")
def faulty_join_of_a_group_with_members(brokers: Brokers, fault: str) -> Plain:
    first = Member.alone(brokers, brokers.name)
    faults: dict[str, dict[str, Plain]] = {
        "no protocol": {"protocols": []},
        "empty type": {"protocol_type": ""},
        "unknown member": {"member_id": "nobody"},
        "other protocol": {"protocols": [{"name": "sticky", "metadata": subscription("topic")}]},
        "other type": {"protocol_type": "connect"},
    }
    return Member(brokers, brokers.name).join(**faults[fault]), first.heartbeat()


@scenario()
def empty_protocol_name(brokers: Brokers) -> Plain:
    member = Member(brokers, brokers.name, protocols=(("", subscription("topic")),))
    return member.join(), member.join()


@scenario(0, -1, 1)
def rebalance_timeout(brokers: Brokers, timeout: int) -> Plain:
    member = Member(brokers, brokers.name)
    return member.join(rebalance_timeout=timeout), member.join(rebalance_timeout=timeout)


@scenario()
def two_members(brokers: Brokers) -> Plain:
    leader, other = Member.alone(brokers, brokers.name), Member(brokers, brokers.name)
    answers = [other.join()]
    other.send_join()
    leader.until_rebalance()
    leader.send_join()
    answers += [leader.joined(), other.joined()]
    other.send_sync()
    answers += [leader.sync({leader.member_id: b"1", other.member_id: b"2"}), other.received()]
    return answers, leader.heartbeat(), other.heartbeat()


@scenario()
def cooperative_members_beside_eager_ones(brokers: Brokers) -> Plain:
    """The common protocol is selected, though the first member prefers another one."""
    first, second = Member(brokers, brokers.name, protocols=BOTH), Member(brokers, brokers.name)
    answers = [first.enter(), first.sync({first.member_id: b""})]
    second.join()
    second.send_join()
    first.until_rebalance()
    answers += [first.join(), second.joined()]
    return answers


@scenario("leader", "other")
def rejoins_unchanged(brokers: Brokers, who: str) -> Plain:
    """A leader begins a rebalance by that, and another member gets the same answer as before."""
    leader, other = Member.pair(brokers, brokers.name)
    if who == "other":
        return other.join(), leader.heartbeat()
    leader.send_join()
    other.until_rebalance()
    return other.join(), leader.joined()


@scenario()
def rejoins_with_other_metadata(brokers: Brokers) -> Plain:
    leader, other = Member.pair(brokers, brokers.name)
    other.send_join(protocols=[{"name": "range", "metadata": subscription("changed")}])
    leader.until_rebalance()
    return leader.join(), other.joined()


@scenario()
def rejoins_before_the_assignment(brokers: Brokers) -> Plain:
    member = Member(brokers, brokers.name)
    member.enter()
    return member.join(), member.sync({member.member_id: b"a"})


# Syncing


@scenario("unknown member", "generation", "type", "protocol", "no names", "empty group", "unknown group")
def faulty_sync(brokers: Brokers, fault: str) -> Plain:
    member = Member.alone(brokers, brokers.name)
    faults: dict[str, dict[str, Plain]] = {
        "unknown member": {"member_id": "nobody"},
        "generation": {"generation_id": 7},
        "type": {"protocol_type": "connect"},
        "protocol": {"protocol_name": "sticky"},
        "no names": {"protocol_type": None, "protocol_name": None},
        "empty group": {"group_id": ""},
        "unknown group": {"group_id": brokers.name + "-other"},
    }
    return member.sync(**faults[fault])


@scenario()
def sync_again(brokers: Brokers) -> Plain:
    return Member.alone(brokers, brokers.name).sync()


@scenario()
def sync_without_an_assignment(brokers: Brokers) -> Plain:
    member = Member(brokers, brokers.name)
    member.enter()
    return member.sync()


@scenario()
def sync_with_an_assignment_for_a_stranger(brokers: Brokers) -> Plain:
    member = Member(brokers, brokers.name)
    member.enter()
    return member.sync({member.member_id: b"a", "stranger": b"b"})


@scenario()
def sync_during_a_rebalance(brokers: Brokers) -> Plain:
    leader, other = Member.pair(brokers, brokers.name)
    leader.send_join()
    other.until_rebalance()
    return other.sync(), other.join(), leader.joined()


# Heartbeats and leaving


@scenario("unknown member", "generation", "no generation", "empty group", "unknown group", "instance")
def faulty_heartbeat(brokers: Brokers, fault: str) -> Plain:
    faults: dict[str, dict[str, Plain]] = {
        "unknown member": {"member_id": "nobody"},
        "generation": {"generation_id": 7},
        "no generation": {"generation_id": -1},
        "empty group": {"group_id": ""},
        "unknown group": {"group_id": brokers.name + "-other"},
        "instance": {"group_instance_id": "unknown"},
    }
    return Member.alone(brokers, brokers.name).heartbeat(**faults[fault])


@scenario()
def heartbeat_before_the_assignment(brokers: Brokers) -> Plain:
    member = Member(brokers, brokers.name)
    member.enter()
    return member.heartbeat()


@scenario()
def heartbeat_of_a_pending_member(brokers: Brokers) -> Plain:
    member = Member(brokers, brokers.name)
    member.join()
    return member.heartbeat(generation_id=0)


@scenario(*range(6))
def leave_in_version(brokers: Brokers, version: int) -> Plain:
    member = Member.alone(brokers, brokers.name)
    coordinator = brokers.coordinator(brokers.name)
    answers = []
    for member_id in ("nobody", member.member_id, member.member_id):
        leaving = {"member_id": member_id} if version < 3 else {"members": [{"member_id": member_id}]}
        answers.append(brokers.ask(LEAVE_GROUP, version, to=coordinator, group_id=brokers.name, **leaving))
    return answers, member.heartbeat()


@scenario("unknown group", "empty group", "nobody", "unknown instance", "no member id")
def faulty_leave(brokers: Brokers, fault: str) -> Plain:
    member = Member.alone(brokers, brokers.name)
    coordinator = brokers.coordinator(brokers.name)
    group = {"unknown group": brokers.name + "-other", "empty group": ""}.get(fault, brokers.name)
    members = [
        {
            "member_id": "" if fault in ("unknown instance", "no member id") else member.member_id,
            "group_instance_id": "unknown" if fault == "unknown instance" else None,
        }
    ]
    return brokers.ask(
        LEAVE_GROUP, to=coordinator, group_id=group, members=[] if fault == "nobody" else members
    )


@scenario()
def pending_member_leaves(brokers: Brokers) -> Plain:
    member = Member(brokers, brokers.name)
    member.join()
    return member.leave(), member.join()


@scenario()
def the_leader_leaves(brokers: Brokers) -> Plain:
    leader, other = Member.pair(brokers, brokers.name)
    left = leader.leave()
    other.until_rebalance()
    return left, other.join(), leader.heartbeat()


@scenario()
def both_leave_in_one_request(brokers: Brokers) -> Plain:
    leader, other = Member.pair(brokers, brokers.name)
    members = [{"member_id": member.member_id} for member in (leader, other)]
    members.append({"member_id": "nobody"})
    return brokers.ask(
        LEAVE_GROUP, to=brokers.coordinator(brokers.name), group_id=brokers.name, members=members
    )


# Static members


@scenario(5, 8, 9)
def static_member_in_version(brokers: Brokers, version: int) -> Plain:
    """Its second client takes its place without a rebalance, and the first one is fenced."""
    first = Member(brokers, brokers.name, instance_id="one", version=version)
    answers = [first.join(), first.sync({first.member_id: b"assigned"})]
    second = Member(brokers, brokers.name, instance_id="one", version=version)
    answers += [second.join(), second.sync()]
    return answers, first.heartbeat(), second.heartbeat()


@scenario()
def static_member_with_other_metadata(brokers: Brokers) -> Plain:
    first = Member(brokers, brokers.name, instance_id="one", protocols=BOTH)
    answers = [first.join(), first.sync({first.member_id: b"assigned"})]
    second = Member(brokers, brokers.name, instance_id="one")
    return answers, second.join(), first.heartbeat()


@scenario()
def static_member_without_its_member_id(brokers: Brokers) -> Plain:
    first = Member(brokers, brokers.name, instance_id="one")
    first.join()
    first.sync({first.member_id: b"assigned"})
    answers = [first.join(member_id="other"), first.sync(member_id="other")]
    return answers, first.heartbeat(member_id="other")


@scenario()
def static_member_is_removed_by_its_instance_id(brokers: Brokers) -> Plain:
    first = Member(brokers, brokers.name, instance_id="one")
    first.join()
    first.sync({first.member_id: b"assigned"})
    return first.leave(by_instance_id=True), first.heartbeat(), first.join()


@scenario()
def static_member_leaves_by_another_member_id(brokers: Brokers) -> Plain:
    first = Member(brokers, brokers.name, instance_id="one")
    first.join()
    first.sync({first.member_id: b"assigned"})
    entry = {"member_id": "other", "group_instance_id": "one"}
    return brokers.ask(
        LEAVE_GROUP, to=brokers.coordinator(brokers.name), group_id=brokers.name, members=[entry]
    )


@scenario()
def static_members_beside_others(brokers: Brokers) -> Plain:
    static = Member(brokers, brokers.name, instance_id="one")
    static.join()
    static.sync({static.member_id: b"assigned"})
    other = Member(brokers, brokers.name)
    other.join()
    other.send_join()
    static.until_rebalance()
    return static.join(), other.joined()


@scenario("", ".", "ü", "a" * 250)
def instance_id(brokers: Brokers, name: str) -> Plain:
    return Member(brokers, brokers.name, instance_id=name).join()["error_code"]


@scenario("ü", "a b", "a" * 1000, ".", "\N{PILE OF POO}")
def group_named(brokers: Brokers, name: str) -> Plain:
    return Member(brokers, name).enter()


def _join(group: str) -> dict[str, Plain]:
    return {
        "group_id": group,
        "session_timeout": SESSION_TIMEOUT,
        "rebalance_timeout": SESSION_TIMEOUT,
        "protocol_type": "consumer",
        "protocols": [{"name": name, "metadata": metadata} for name, metadata in RANGE],
    }
