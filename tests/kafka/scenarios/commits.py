"""Committed offsets, and groups as administrators see them."""

from itertools import product
from typing import Final

from examples.broker.protocol.apis import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
)
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.members import Member, subscription
from tests.kafka.scenarios.scenario import scenario

STATES: Final = ("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Dead")


# Commits


@scenario(-1, 0, 5)
def unknown_group_in_generation(brokers: Brokers, generation: int) -> Plain:
    topic = brokers.topic()
    answer = _commit(brokers, topic, generation_id_or_member_epoch=generation, member_id="")
    return answer, _fetched(brokers, topic), _described(brokers)


@scenario("nobody", "")
def unknown_group_of_member(brokers: Brokers, member: str) -> Plain:
    topic = brokers.topic()
    answer = _commit(brokers, topic, generation_id_or_member_epoch=1, member_id=member)
    return answer, _described(brokers)


@scenario("none", "empty", "text", "long", "too long")
def metadata(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic()
    text = {"none": None, "empty": "", "text": "ü", "long": "a" * 4096, "too long": "a" * 4097}[kind]
    return _commit(brokers, topic, metadata=text), _fetched(brokers, topic)


@scenario(2048, 2049, 4096, 4097)
def metadata_of_two_byte_characters(brokers: Brokers, count: int) -> Plain:
    return _commit(brokers, brokers.topic(), metadata="ü" * count)


@scenario(-1, -2, 0, 2**62)
def offset(brokers: Brokers, offset: int) -> Plain:
    topic = brokers.topic()
    return _commit(brokers, topic, offset=offset), _fetched(brokers, topic)


@scenario(-1, 0, 7)
def leader_epoch(brokers: Brokers, epoch: int) -> Plain:
    topic = brokers.topic()
    return _commit(brokers, topic, epoch=epoch), _fetched(brokers, topic)


@scenario("unknown topic", "unknown partition", "negative partition", "illegal name")
def of_what_does_not_exist(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic()
    name = {"unknown topic": "nowhere", "illegal name": "ü"}.get(kind, topic)
    partition = {"unknown partition": 3, "negative partition": -1}.get(kind, 0)
    return _commit(brokers, name, partition=partition), _described(brokers)


@scenario()
def one_of_two_topics_does_not_exist(brokers: Brokers) -> Plain:
    topic = brokers.topic()
    entry = {"partition_index": 0, "committed_offset": 5}
    answer = brokers.ask(
        OFFSET_COMMIT,
        to=brokers.coordinator(brokers.name),
        group_id=brokers.name,
        topics=[{"name": name, "partitions": [entry]} for name in (topic, "nowhere")],
    )
    return sorted(answer["topics"], key=lambda entry: str(entry["name"] != topic)), _fetched(brokers, topic)


@scenario()
def of_no_topic(brokers: Brokers) -> Plain:
    coordinator = brokers.coordinator(brokers.name)
    return brokers.ask(OFFSET_COMMIT, to=coordinator, group_id=brokers.name), _described(brokers)


@scenario()
def with_an_empty_group_id(brokers: Brokers) -> Plain:
    topic, coordinator = brokers.topic(), brokers.coordinator("")
    return brokers.ask(OFFSET_COMMIT, to=coordinator, group_id="", **_one_offset(topic))


@scenario()
def not_at_the_coordinator(brokers: Brokers) -> Plain:
    topic = brokers.topic()
    other = brokers.coordinator(brokers.name) % 3 + 1
    return (
        brokers.ask(OFFSET_COMMIT, to=other, group_id=brokers.name, **_one_offset(topic)),
        brokers.ask(OFFSET_FETCH, to=other, groups=[{"group_id": brokers.name, "topics": None}]),
    )


@scenario("member", "no member", "other member", "old generation", "later generation", "no generation")
def in_a_stable_group(brokers: Brokers, who: str) -> Plain:
    member, topic = Member.alone(brokers, brokers.name), brokers.topic()
    identity: dict[str, Plain] = {
        "member_id": member.member_id,
        "generation_id_or_member_epoch": member.generation_id,
    }
    others: dict[str, dict[str, Plain]] = {
        "no member": {"member_id": "", "generation_id_or_member_epoch": -1},
        "other member": {"member_id": "nobody"},
        "old generation": {"generation_id_or_member_epoch": 0},
        "later generation": {"generation_id_or_member_epoch": 9},
        "no generation": {"generation_id_or_member_epoch": -1},
    }
    return _commit(brokers, topic, **identity | others.get(who, {})), _fetched(brokers, topic)


@scenario()
def before_the_assignment(brokers: Brokers) -> Plain:
    member, topic = Member(brokers, brokers.name), brokers.topic()
    member.enter()
    return _commit(
        brokers,
        topic,
        member_id=member.member_id,
        generation_id_or_member_epoch=member.generation_id,
    )


@scenario()
def during_a_rebalance(brokers: Brokers) -> Plain:
    (leader, other), topic = Member.pair(brokers, brokers.name), brokers.topic()
    leader.send_join()
    other.until_rebalance()
    answer = _commit(
        brokers, topic, member_id=other.member_id, generation_id_or_member_epoch=other.generation_id
    )
    other.join()
    leader.joined()
    return answer


@scenario()
def after_leaving(brokers: Brokers) -> Plain:
    member, topic = Member.alone(brokers, brokers.name), brokers.topic()
    member.leave()
    identity: dict[str, Plain] = {
        "member_id": member.member_id,
        "generation_id_or_member_epoch": member.generation_id,
    }
    return _commit(brokers, topic, **identity), _commit(brokers, topic, offset=9), _fetched(brokers, topic)


@scenario()
def by_a_fenced_static_member(brokers: Brokers) -> Plain:
    topic, first = brokers.topic(), Member(brokers, brokers.name, instance_id="one")
    first.join()
    first.sync({first.member_id: b"assigned"})
    Member(brokers, brokers.name, instance_id="one").join()
    return _commit(
        brokers,
        topic,
        member_id=first.member_id,
        group_instance_id="one",
        generation_id_or_member_epoch=first.generation_id,
    )


@scenario(*range(2, 10))
def commit_in_version(brokers: Brokers, version: int) -> Plain:
    topic = brokers.topic()
    return _commit(brokers, topic, version=version), _fetched(brokers, topic)


# Committed offsets


@scenario(*product(range(2, 10), (True, False)))
def fetch_in_version(brokers: Brokers, version: int, all_topics: bool) -> Plain:
    topic, coordinator = brokers.topic(), brokers.coordinator(brokers.name)
    _commit(brokers, topic, epoch=0, metadata="text")
    topics = None if all_topics else [{"name": topic, "partition_indexes": [0, 5]}]
    if version < 8:
        return brokers.ask(OFFSET_FETCH, version, to=coordinator, group_id=brokers.name, topics=topics)
    groups = [{"group_id": brokers.name, "topics": topics}]
    return brokers.ask(OFFSET_FETCH, version, to=coordinator, groups=groups)


@scenario(*product((2, 7, 9), ("all", "none", "one")))
def fetch_of_an_unknown_group(brokers: Brokers, version: int, kind: str) -> Plain:
    topic, coordinator = brokers.topic(), brokers.coordinator(brokers.name)
    topics = {"all": None, "none": [], "one": [{"name": topic, "partition_indexes": [0]}]}[kind]
    if version < 8:
        return brokers.ask(OFFSET_FETCH, version, to=coordinator, group_id=brokers.name, topics=topics)
    groups = [{"group_id": brokers.name, "topics": topics}]
    return brokers.ask(OFFSET_FETCH, version, to=coordinator, groups=groups)


@scenario("unknown topic", "no topic", "empty group", "stable")
def fetch_with(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic()
    group = "" if kind == "empty group" else brokers.name
    _commit(brokers, topic)
    topics = {
        "unknown topic": [{"name": "nowhere", "partition_indexes": [0]}],
        "no topic": [],
    }.get(kind)
    return brokers.ask(
        OFFSET_FETCH,
        to=brokers.coordinator(group),
        groups=[{"group_id": group, "topics": topics}],
        require_stable=kind == "stable",
    )


@scenario()
def fetch_of_two_groups(brokers: Brokers) -> Plain:
    topic, coordinator = brokers.topic(), brokers.coordinator(brokers.name)
    _commit(brokers, topic)
    groups = [{"group_id": brokers.name, "topics": None}] * 2
    return brokers.ask(OFFSET_FETCH, to=coordinator, groups=groups)


@scenario("member", "unknown member", "epoch")
def fetch_of_a_classic_group_by(brokers: Brokers, who: str) -> Plain:
    member = Member.alone(brokers, brokers.name)
    group = {
        "group_id": brokers.name,
        "topics": None,
        "member_id": "nobody" if who == "unknown member" else member.member_id,
        "member_epoch": 4 if who == "epoch" else -1,
    }
    return brokers.ask(OFFSET_FETCH, to=brokers.coordinator(brokers.name), groups=[group])


# Deletion of offsets


@scenario("unknown group", "empty group", "unknown topic", "unknown partition", "not committed", "committed")
def deletion(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic(replicas=((1,), (1,)))
    _commit(brokers, topic)
    group = {"unknown group": brokers.name + "-other", "empty group": ""}.get(kind, brokers.name)
    partition = {"unknown partition": 4, "not committed": 1}.get(kind, 0)
    answer = brokers.ask(
        OFFSET_DELETE,
        to=brokers.coordinator(group),
        group_id=group,
        topics=[
            {
                "name": "nowhere" if kind == "unknown topic" else topic,
                "partitions": [{"partition_index": partition}],
            }
        ],
    )
    return answer, _fetched(brokers, topic), _described(brokers)


@scenario("subscribed", "not subscribed", "not a consumer")
def deletion_in_a_group_with_members(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic()
    _commit(brokers, topic)
    Member.alone(
        brokers,
        brokers.name,
        protocols=(("range", subscription(topic if kind == "subscribed" else "another")),),
        protocol_type="connect" if kind == "not a consumer" else "consumer",
    )
    answer = brokers.ask(
        OFFSET_DELETE,
        to=brokers.coordinator(brokers.name),
        group_id=brokers.name,
        topics=[{"name": topic, "partitions": [{"partition_index": 0}]}],
    )
    return answer, _fetched(brokers, topic)


# Administration


@scenario(*range(6))
def describe_in_version(brokers: Brokers, version: int) -> Plain:
    member = Member.alone(brokers, brokers.name)
    coordinator = brokers.coordinator(brokers.name)
    groups = [brokers.name, brokers.name + "-unknown"]
    answer = brokers.ask(DESCRIBE_GROUPS, version, to=coordinator, groups=groups)
    assert member.heartbeat() == "none"
    return sorted(answer["groups"], key=lambda group: str(group["group_id"]))


@scenario(True, False)
def describe_with_authorized_operations(brokers: Brokers, included: bool) -> Plain:
    Member.alone(brokers, brokers.name)
    return brokers.ask(
        DESCRIBE_GROUPS,
        to=brokers.coordinator(brokers.name),
        groups=[brokers.name],
        include_authorized_operations=included,
    )["groups"][0]["authorized_operations"]


@scenario("completing", "stable", "empty", "committed", "static", "left and committed")
def described(brokers: Brokers, state: str) -> Plain:
    topic = brokers.topic()
    member = Member(brokers, brokers.name, instance_id="one" if state == "static" else None)
    if state == "committed":
        _commit(brokers, topic)
    else:
        member.enter()
        if state != "completing":
            member.sync({member.member_id: b"assigned"})
        if state in ("empty", "left and committed"):
            member.leave()
        if state == "left and committed":
            _commit(brokers, topic)
    return _described(brokers), _listed(brokers)


@scenario()
def described_while_it_rebalances(brokers: Brokers) -> Plain:
    leader, other = Member.pair(brokers, brokers.name)
    leader.send_join()
    other.until_rebalance()
    answer = _described(brokers)
    other.join()
    leader.joined()
    return answer


@scenario()
def described_with_an_empty_id(brokers: Brokers) -> Plain:
    return brokers.ask(DESCRIBE_GROUPS, to=brokers.coordinator(""), groups=[""])


@scenario()
def described_elsewhere(brokers: Brokers) -> Plain:
    other = brokers.coordinator(brokers.name) % 3 + 1
    return brokers.ask(DESCRIBE_GROUPS, to=other, groups=[brokers.name])


@scenario(*range(5))
def list_in_version(brokers: Brokers, version: int) -> Plain:
    Member.alone(brokers, brokers.name)
    return _listed(brokers, version=version)


@scenario(*product(STATES, ("as it is", "lower")), ("Unknown", "as it is"), ("", "as it is"))
def list_by_state(brokers: Brokers, state: str, letters: str) -> Plain:
    member = Member.alone(brokers, brokers.name)
    member.leave()
    Member.alone(brokers, brokers.name + "-stable")
    wanted = state.lower() if letters == "lower" else state
    stable = brokers.name + "-stable"
    return _listed(brokers, states_filter=[wanted]), _listed(brokers, stable, states_filter=[wanted])


@scenario("unknown", "empty id", "members", "empty", "committed", "pending", "twice", "elsewhere")
def delete(brokers: Brokers, kind: str) -> Plain:
    topic, coordinator = brokers.topic(), brokers.coordinator(brokers.name)
    if kind in ("members", "empty"):
        member = Member.alone(brokers, brokers.name)
        if kind == "empty":
            member.leave()
    if kind == "pending":
        Member(brokers, brokers.name).join()
    if kind in ("committed", "twice", "elsewhere"):
        _commit(brokers, topic)
    names = [brokers.name] * 2 if kind == "twice" else [brokers.name]
    answer = brokers.ask(
        DELETE_GROUPS,
        to=coordinator % 3 + 1 if kind == "elsewhere" else coordinator,
        groups_names=[""] if kind == "empty id" else names,
    )
    return answer, _described(brokers), _fetched(brokers, topic)


@scenario(*range(3))
def delete_in_version(brokers: Brokers, version: int) -> Plain:
    _commit(brokers, brokers.topic())
    coordinator = brokers.coordinator(brokers.name)
    return brokers.ask(DELETE_GROUPS, version, to=coordinator, groups_names=[brokers.name])


def _one_offset(
    topic: str, partition: int = 0, offset: int = 5, epoch: int | None = None, metadata: str | None = None
) -> dict[str, Plain]:
    entry = {"partition_index": partition, "committed_offset": offset, "committed_metadata": metadata}
    if epoch is not None:
        entry["committed_leader_epoch"] = epoch
    return {"topics": [{"name": topic, "partitions": [entry]}]}


def _commit(
    brokers: Brokers,
    topic: str,
    *,
    partition: int = 0,
    offset: int = 5,
    epoch: int | None = None,
    metadata: str | None = None,
    version: int | None = None,
    **values: Plain,
) -> Plain:
    return brokers.ask(
        OFFSET_COMMIT,
        version,
        to=brokers.coordinator(brokers.name),
        group_id=brokers.name,
        **_one_offset(topic, partition, offset, epoch, metadata) | values,
    )


def _fetched(brokers: Brokers, topic: str) -> Plain:
    topics = [{"name": topic, "partition_indexes": [0]}]
    return brokers.ask(
        OFFSET_FETCH,
        to=brokers.coordinator(brokers.name),
        groups=[{"group_id": brokers.name, "topics": topics}],
    )["groups"][0]


def _described(brokers: Brokers) -> Plain:
    coordinator = brokers.coordinator(brokers.name)
    return brokers.ask(DESCRIBE_GROUPS, to=coordinator, groups=[brokers.name])["groups"][0]


def _listed(brokers: Brokers, group: str | None = None, version: int | None = None, **values: Plain) -> Plain:
    """Return the answer with that group alone, or with the scenario's."""
    group = brokers.name if group is None else group
    answer = brokers.ask(LIST_GROUPS, version, to=brokers.coordinator(group), **values)
    answer["groups"] = [entry for entry in answer["groups"] if entry["group_id"] == group]
    return answer
