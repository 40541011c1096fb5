"""Metadata: topics by name and by id, creation on demand, and versions."""

from itertools import product
from typing import Final
from uuid import UUID

from examples.broker.protocol.apis import METADATA
from tests.examples.broker.live.live_cluster import until
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.scenario import scenario

_UNKNOWN_ID: Final = UUID(int=77)


@scenario(*range(14))
def of_a_topic_in_version(brokers: Brokers, version: int) -> Plain:
    topic = brokers.topic(replicas=((1, 2, 3), (2, 3, 1)))
    answer = brokers.ask(METADATA, version, topics=[{"name": topic}])
    return _in_order(answer)


@scenario(*range(14))
def of_an_unknown_topic_in_version(brokers: Brokers, version: int) -> Plain:
    """Versions before 4 cannot forbid that the topic is created, so the name is one that cannot be."""
    name = "ü" if version < 4 else "nowhere"
    values = {} if version < 4 else {"allow_auto_topic_creation": False}
    return brokers.ask(METADATA, version, topics=[{"name": name}], **values)["topics"]


@scenario(*range(14))
def of_no_topic_in_version(brokers: Brokers, version: int) -> Plain:
    brokers.topic()
    return bool(brokers.ask(METADATA, version, topics=[])["topics"])


@scenario(*range(1, 14))
def of_all_topics_in_version(brokers: Brokers, version: int) -> Plain:
    topic = brokers.topic()
    answer = brokers.ask(METADATA, version, topics=None)
    answer["topics"] = [entry for entry in answer["topics"] if entry["name"] == topic]
    return answer


@scenario(*product(("", ".", "..", "ü", "a b", "a" * 250), (False, True)))
def named(brokers: Brokers, name: str, created: bool) -> Plain:
    return brokers.ask(METADATA, topics=[{"name": name}], allow_auto_topic_creation=created)["topics"]


@scenario(*product((10, 12, 13), ("known", "unknown", "zero", "with a name", "with null name")))
def by_id(brokers: Brokers, version: int, kind: str) -> Plain:
    topic = brokers.topic()
    known = UUID(brokers.described(topic)["topic_id"])
    wanted = {
        "known": {"topic_id": known, "name": None},
        "unknown": {"topic_id": _UNKNOWN_ID, "name": None},
        "zero": {"topic_id": None, "name": topic},
        "with a name": {"topic_id": known, "name": topic},
        "with null name": {"topic_id": None, "name": None},
    }[kind]
    answer = brokers.ask(METADATA, version, topics=[wanted], allow_auto_topic_creation=False)
    return answer if isinstance(answer, str) else answer["topics"]


@scenario()
def named_twice(brokers: Brokers) -> Plain:
    topic = brokers.topic()
    return brokers.ask(METADATA, topics=[{"name": topic}] * 2)["topics"]


@scenario()
def known_and_unknown(brokers: Brokers) -> Plain:
    topic = brokers.topic()
    names = [{"name": topic}, {"name": "nowhere"}]
    answer = brokers.ask(METADATA, topics=names, allow_auto_topic_creation=False)
    return sorted((entry["name"] == topic, entry["error_code"]) for entry in answer["topics"])


@scenario()
def first_answer_of_a_topic_created_on_demand(brokers: Brokers) -> Plain:
    return brokers.ask(METADATA, topics=[{"name": brokers.name}], allow_auto_topic_creation=True)["topics"][
        0
    ]["error_code"]


@scenario(3, 4, 13)
def created_on_demand_in_version(brokers: Brokers, version: int) -> Plain:
    values = {} if version < 4 else {"allow_auto_topic_creation": True}

    def known() -> Plain:
        (topic,) = brokers.ask(METADATA, version, topics=[{"name": brokers.name}], **values)["topics"]
        return topic if topic["error_code"] == "none" else None

    topic = until(known)
    return topic["error_code"], len(topic["partitions"])


@scenario(True, False)
def with_authorized_operations(brokers: Brokers, included: bool) -> Plain:
    topic = brokers.topic()
    answer = brokers.ask(METADATA, topics=[{"name": topic}], include_topic_authorized_operations=included)
    return answer["topics"][0]["topic_authorized_operations"]


@scenario()
def of_the_offsets_topic(brokers: Brokers) -> Plain:
    brokers.coordinator("group")
    topic = brokers.described("__consumer_offsets")
    return topic["is_internal"], len(topic["partitions"]), len(topic["partitions"][0]["replica_nodes"])


@scenario()
def every_broker_tells_the_same(brokers: Brokers) -> Plain:
    topic = brokers.topic(replicas=((1, 2, 3),))
    answers = [brokers.ask(METADATA, to=broker, topics=[{"name": topic}]) for broker in (1, 2, 3)]
    return [_in_order(answer) for answer in answers]


def _in_order(answer: Plain) -> Plain:
    for topic in answer["topics"]:
        topic["partitions"].sort(key=lambda partition: int(partition["partition_index"]))
    return answer
