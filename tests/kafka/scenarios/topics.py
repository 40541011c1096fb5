"""Topics: their names, creation, growth and deletion."""

from itertools import product
from typing import Final

from examples.broker.protocol.apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, METADATA
from tests.examples.broker.live.live_cluster import until
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.scenario import scenario

DEFAULT: Final = -1

# The number of partitions, the number of replicas, the assignment, and settings.
CREATED: Final[dict[str, tuple[int, int, dict[int, list[int]], dict[str, str | None]]]] = {
    "by default": (DEFAULT, DEFAULT, {}, {}),
    "two partitions": (2, 1, {}, {}),
    "three replicas": (1, 3, {}, {}),
    "no partition": (0, 1, {}, {}),
    "fewer than no partitions": (-2, 1, {}, {}),
    "no replica": (1, 0, {}, {}),
    "fewer than no replicas": (1, -2, {}, {}),
    "too many replicas": (1, 4, {}, {}),
    "no partition and no replica": (0, 0, {}, {}),
    "too many partitions": (10_001, 1, {}, {}),
    "assigned": (DEFAULT, DEFAULT, {0: [2, 3], 1: [3, 1]}, {}),
    "assigned in another order": (DEFAULT, DEFAULT, {1: [2], 0: [3]}, {}),
    "assigned and counted": (1, DEFAULT, {0: [1]}, {}),
    "assigned and replicated": (DEFAULT, 1, {0: [1]}, {}),
    "assigned with a gap": (DEFAULT, DEFAULT, {0: [1], 2: [1]}, {}),
    "assigned from 1 on": (DEFAULT, DEFAULT, {1: [1]}, {}),
    "assigned to nobody": (DEFAULT, DEFAULT, {0: []}, {}),
    "assigned twice to a broker": (DEFAULT, DEFAULT, {0: [1, 1]}, {}),
    "assigned to a stranger": (DEFAULT, DEFAULT, {0: [1, 9]}, {}),
    "assigned unequally": (DEFAULT, DEFAULT, {0: [1], 1: [1, 2]}, {}),
    "configured": (1, 1, {}, {"retention.ms": "1000", "max.message.bytes": "2000"}),
    "unknown setting": (1, 1, {}, {"no.such.setting": "1"}),
    "wrong value": (1, 1, {}, {"retention.ms": "long"}),
    "value out of range": (1, 1, {}, {"min.insync.replicas": "0"}),
    "null value": (1, 1, {}, {"retention.ms": None}),
    "empty value": (1, 1, {}, {"retention.ms": ""}),
    "spaces around a value": (1, 1, {}, {"retention.ms": " 1000 "}),
    "unknown codec": (1, 1, {}, {"compression.type": "rar"}),
    "compacted": (1, 1, {}, {"cleanup.policy": "compact"}),
    "unknown policy": (1, 1, {}, {"cleanup.policy": "burn"}),
    "unclean elections": (1, 1, {}, {"unclean.leader.election.enable": "true"}),
    "preallocated": (1, 1, {}, {"preallocate": "true"}),
    "in remote storage": (1, 1, {}, {"remote.storage.enable": "true"}),
    "old format": (1, 1, {}, {"message.format.version": "2.8"}),
}

NAMES: Final = (
    *("", ".", "..", "...", "-", "_", "__", "a.b_c", "a" * 249, "a" * 250, "ü", "a b", "a/b", "a\0b", "a\n"),
    *("__consumer_offsets", "__share_group_state", "__cluster_metadata"),
    *("__remote_log_metadata", "\N{PILE OF POO}"),
)


@scenario(*product(CREATED, (False, True)))
def created(brokers: Brokers, kind: str, only_validated: bool) -> Plain:
    answer = _create(brokers, brokers.name, kind, only_validated=only_validated)
    # The settings that both clusters know by other defaults are in the scenarios of configurations.
    configs = answer.pop("configs")
    own = CREATED[kind][3]
    return answer, configs is None, [entry for entry in configs or () if entry["name"] in own]


@scenario(*range(2, 8))
def created_in_version(brokers: Brokers, version: int) -> Plain:
    topic = {"name": brokers.name, "num_partitions": 2, "replication_factor": 1}
    answers = [
        brokers.ask(CREATE_TOPICS, version, topics=[topic], timeout=10_000)["topics"] for _ in range(2)
    ]
    for (answer,) in answers:
        if answer.get("configs"):
            answer["configs"] = "settings"
    return answers


@scenario()
def default_counts_in_version_3(brokers: Brokers) -> Plain:
    topic = {"name": brokers.name, "num_partitions": DEFAULT, "replication_factor": DEFAULT}
    return brokers.ask(CREATE_TOPICS, 3, topics=[topic], timeout=10_000)


@scenario(False, True)
def exists(brokers: Brokers, only_validated: bool) -> Plain:
    return _create(brokers, brokers.topic(), "two partitions", only_validated=only_validated)


@scenario(*range(len(NAMES)))
def named(brokers: Brokers, number: int) -> Plain:
    """Create it, unless the brokers create it themselves, and see what the metadata says of that name."""
    answer = _create(brokers, NAMES[number], "two partitions", only_validated=True)
    answer.pop("configs")
    return answer


@scenario(("q.r", "q_r"), ("q_r", "q.r"), ("s.t.u", "s_t.u"), ("v.w", "v.w."), ("x.y", "X_Y"), ("z", "Z"))
def collide(brokers: Brokers, first: str, second: str) -> Plain:
    """Kafka's metrics have an underscore for each dot, so topics must differ in more."""
    names = [brokers.name + first, brokers.name + second]
    answers = [_create(brokers, name, "two partitions")["error_code"] for name in names]
    return answers, [
        _create(brokers, name, "two partitions", only_validated=True)["error_code"] for name in names
    ]


@scenario(("k.l", "k_l"), ("m", "n"))
def collide_in_one_request(brokers: Brokers, first: str, second: str) -> Plain:
    topics = [
        {"name": brokers.name + name, "num_partitions": 1, "replication_factor": 1}
        for name in (first, second)
    ]
    answer = brokers.ask(CREATE_TOPICS, topics=topics, timeout=10_000)
    return sorted(entry["error_code"] for entry in answer["topics"])


@scenario()
def collides_when_created_on_demand(brokers: Brokers) -> Plain:
    assert _create(brokers, brokers.name + "a.b", "two partitions")["error_code"] == "none"
    wanted = [{"name": brokers.name + "a_b"}]
    return [brokers.ask(METADATA, topics=wanted, allow_auto_topic_creation=True)["topics"] for _ in range(2)]


@scenario()
def named_twice(brokers: Brokers) -> Plain:
    topic = {"name": brokers.name, "num_partitions": 1, "replication_factor": 1}
    return brokers.ask(CREATE_TOPICS, topics=[topic, topic], timeout=10_000)["topics"]


@scenario()
def none_created(brokers: Brokers) -> Plain:
    return brokers.ask(CREATE_TOPICS, topics=[], timeout=10_000)


# Deletion


@scenario("unknown", "twice", "illegal name", "empty name", "exists", "none")
def deleted(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic()
    names = {
        "unknown": ["nowhere"],
        "twice": [topic, topic],
        "illegal name": ["ü"],
        "empty name": [""],
        "none": [],
    }.get(kind, [topic])
    answer = brokers.ask(DELETE_TOPICS, topic_names=names, timeout=10_000)
    if kind == "exists":
        for broker in (1, 2, 3):
            until(lambda broker=broker: brokers.described(topic, to=broker)["error_code"] != "none")  # type: ignore[misc]  # mypy#15459
    return answer, brokers.described(topic)


@scenario(*range(1, 6))
def deleted_in_version(brokers: Brokers, version: int) -> Plain:
    topic = brokers.topic()
    answer = brokers.ask(DELETE_TOPICS, version, topic_names=[topic, "nowhere"], timeout=10_000)
    return sorted(answer["responses"], key=lambda entry: str(entry["name"]))


@scenario()
def created_again_after_deletion(brokers: Brokers) -> Plain:
    """The new topic has another id, and nothing of the old one."""
    first = brokers.described(brokers.topic())
    brokers.ask(DELETE_TOPICS, topic_names=[brokers.name], timeout=10_000)
    until(lambda: brokers.described(brokers.name)["error_code"] != "none")
    second = brokers.described(brokers.topic())
    return first, second, brokers.offset(brokers.name, -1)


# More partitions

# The new number of partitions, and the assignment of the new ones, of a topic with two partitions.
GROWN: Final[dict[str, tuple[int, list[list[int]] | None]]] = {
    "one more": (3, None),
    "as many": (2, None),
    "fewer": (1, None),
    "none": (0, None),
    "negative": (-1, None),
    "assigned": (3, [[2]]),
    "assigned nothing": (3, []),
    "assigned too few": (4, [[2]]),
    "assigned too many": (3, [[2], [3]]),
    "assigned to nobody": (3, [[]]),
    "assigned to a stranger": (3, [[9]]),
    "assigned twice to a broker": (3, [[1, 1]]),
    "assigned more replicas": (3, [[1, 2]]),
}


@scenario(*product(GROWN, (False, True)))
def grown(brokers: Brokers, kind: str, only_validated: bool) -> Plain:
    topic = brokers.topic(replicas=((1,), (1,)))
    count, assignment = GROWN[kind]
    answer = brokers.ask(
        CREATE_PARTITIONS,
        topics=[
            {
                "name": topic,
                "count": count,
                "assignments": assignment and [{"broker_ids": ids} for ids in assignment],
            }
        ],
        timeout=10_000,
        validate_only=only_validated,
    )
    if kind == "one more" and not only_validated:
        until(lambda: len(brokers.described(topic)["partitions"]) == 3)
    return answer, len(brokers.described(topic)["partitions"])


@scenario("unknown", "twice", "internal", "none")
def grown_topic(brokers: Brokers, kind: str) -> Plain:
    topic = brokers.topic()
    brokers.coordinator("group")
    name = {"unknown": "nowhere", "internal": "__consumer_offsets"}.get(kind, topic)
    topics = [{"name": name, "count": 0 if kind == "internal" else 3, "assignments": None}]
    number = {"twice": 2, "none": 0}.get(kind, 1)
    return brokers.ask(CREATE_PARTITIONS, topics=topics * number, timeout=10_000, validate_only=True)


@scenario(*range(4))
def grown_in_version(brokers: Brokers, version: int) -> Plain:
    topics = [{"name": brokers.topic(), "count": 2, "assignments": None}]
    return brokers.ask(CREATE_PARTITIONS, version, topics=topics, timeout=10_000)


def _create(brokers: Brokers, name: str, kind: str, *, only_validated: bool = False) -> Plain:
    partitions, replicas, assigned, configs = CREATED[kind]
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [{"partition_index": index, "broker_ids": ids} for index, ids in assigned.items()],
        "configs": [{"name": key, "value": value} for key, value in configs.items()],
    }
    return brokers.ask(CREATE_TOPICS, topics=[topic], timeout=10_000, validate_only=only_validated)["topics"][
        0
    ]
