"""Configurations of topics and brokers."""

from itertools import product
from typing import Final

from examples.broker.protocol.apis import ALTER_CONFIGS, DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from tests.examples.broker.live.live_cluster import until
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.scenario import scenario

TOPIC: Final = 2
BROKER: Final = 4
SET, DELETE, APPEND, SUBTRACT = range(4)

# Resources that are unknown, or that another broker has to be asked for.
RESOURCES: Final[dict[str, tuple[int, str]]] = {
    "unknown topic": (TOPIC, "nowhere"),
    "illegal name": (TOPIC, "ü"),
    "empty name": (TOPIC, ""),
    "type 0": (0, "x"),
    "type 3": (3, "x"),
    "other broker": (BROKER, "2"),
    "unknown broker": (BROKER, "77"),
    "no broker": (BROKER, "one"),
}

# What is done to a topic that has retention.ms=1000: the setting, the operation and the value.
CHANGES: Final[dict[str, list[tuple[str, int, str | None]]]] = {
    "set": [("retention.bytes", SET, "5000")],
    "set to the default": [("max.message.bytes", SET, "1048588")],
    "set again": [("retention.ms", SET, "2000")],
    "set to null": [("retention.ms", SET, None)],
    "set to a wrong value": [("retention.ms", SET, "long")],
    "set to a value out of range": [("min.insync.replicas", SET, "0")],
    "set what is unknown": [("no.such.setting", SET, "1")],
    "delete": [("retention.ms", DELETE, None)],
    "delete with a value": [("retention.ms", DELETE, "5")],
    "delete what has its default": [("retention.bytes", DELETE, None)],
    "delete what is unknown": [("no.such.setting", DELETE, None)],
    "append to a number": [("retention.ms", APPEND, "5")],
    "append what is there": [("cleanup.policy", APPEND, "delete")],
    "append what is wrong": [("cleanup.policy", APPEND, "burn")],
    "append null": [("cleanup.policy", APPEND, None)],
    "subtract what is not there": [("cleanup.policy", SUBTRACT, "compact")],
    "unknown operation": [("retention.ms", 7, "5")],
    "negative operation": [("retention.ms", -1, "5")],
    "two settings": [("retention.bytes", SET, "5000"), ("max.message.bytes", SET, "2000")],
    "one setting twice": [("retention.bytes", SET, "5000"), ("retention.bytes", SET, "6000")],
    "one of two is wrong": [("retention.bytes", SET, "5000"), ("max.message.bytes", SET, "much")],
    "nothing": [],
}


@scenario(*product(CHANGES, (False, True)))
def changed(brokers: Brokers, change: str, only_validated: bool) -> Plain:
    topic = _configured(brokers)
    answer = _change(brokers, TOPIC, topic, CHANGES[change], only_validated=only_validated)
    if change == "set" and not only_validated:
        until(lambda: _values(brokers, topic)["retention.bytes"] == "5000")
    return answer


@scenario(*RESOURCES)
def changed_resource(brokers: Brokers, kind: str) -> Plain:
    resource_type, name = RESOURCES[kind]
    return _change(brokers, resource_type, name, [("retention.ms", SET, "5")])


@scenario()
def broker_changed(brokers: Brokers) -> Plain:
    """A setting that no broker changes while it runs."""
    return _change(brokers, BROKER, "1", [("broker.id", SET, "5")], only_validated=True)


@scenario()
def changed_twice_in_one_request(brokers: Brokers) -> Plain:
    topic = _configured(brokers)
    resource = {
        "resource_type": TOPIC,
        "resource_name": topic,
        "configs": [{"name": "retention.bytes", "config_operation": SET, "value": "5000"}],
    }
    return brokers.ask(INCREMENTAL_ALTER_CONFIGS, resources=[resource, resource])


@scenario("set", "nothing", "null", "wrong value", "unknown setting", "unknown topic", "twice", "validated")
def replaced(brokers: Brokers, kind: str) -> Plain:
    topic = _configured(brokers)
    changes: dict[str, list[tuple[str, str | None]]] = {
        "nothing": [],
        "null": [("retention.bytes", None)],
        "wrong value": [("retention.bytes", "much")],
        "unknown setting": [("no.such.setting", "1")],
        "twice": [("retention.bytes", "5000"), ("retention.bytes", "6000")],
    }
    configs = changes.get(kind, [("retention.bytes", "5000")])
    answer = brokers.ask(
        ALTER_CONFIGS,
        resources=[
            {
                "resource_type": TOPIC,
                "resource_name": "nowhere" if kind == "unknown topic" else topic,
                "configs": [{"name": name, "value": value} for name, value in configs],
            }
        ],
        validate_only=kind == "validated",
    )
    if kind == "set":
        until(lambda: _values(brokers, topic)["retention.bytes"] == "5000")
    values = _values(brokers, topic)
    return answer, values["retention.ms"] if kind == "set" else None


@scenario()
def one_setting(brokers: Brokers) -> Plain:
    return _described(brokers, TOPIC, _configured(brokers), ["retention.ms"])


@scenario(*range(1, 5))
def one_setting_in_version(brokers: Brokers, version: int) -> Plain:
    return _described(brokers, TOPIC, _configured(brokers), ["retention.ms"], version=version)


@scenario(
    "min.insync.replicas", "cleanup.policy", "compression.type", "message.timestamp.type", "preallocate"
)
def setting_by_default(brokers: Brokers, name: str) -> Plain:
    return _described(brokers, TOPIC, brokers.topic(), [name])


@scenario()
def setting_with_synonyms(brokers: Brokers) -> Plain:
    return _described(brokers, TOPIC, _configured(brokers), ["retention.ms"], include_synonyms=True)


@scenario()
def setting_with_its_documentation(brokers: Brokers) -> Plain:
    answer = _described(brokers, TOPIC, _configured(brokers), ["retention.ms"], include_documentation=True)
    return bool(answer["results"][0]["configs"][0]["documentation"])


@scenario(["no.such.setting"], [], ["retention.ms", "retention.ms"])
def settings_named(brokers: Brokers, names: list[str]) -> Plain:
    answer = _described(brokers, TOPIC, _configured(brokers), names)
    found = [entry["name"] for entry in answer["results"][0]["configs"]]
    return answer["results"][0]["error_code"], [name for name in found if name in names], bool(found)


@scenario()
def all_settings(brokers: Brokers) -> Plain:
    """Those that only one cluster has, or that have other values, are what differs."""
    return {
        entry["name"]: (entry["value"], entry["read_only"], entry["config_source"], entry["config_type"])
        for entry in _described(brokers, TOPIC, brokers.topic(), None)["results"][0]["configs"]
    }


@scenario(*RESOURCES)
def described_resource(brokers: Brokers, kind: str) -> Plain:
    resource_type, name = RESOURCES[kind]
    return _described(brokers, resource_type, name, ["retention.ms"])


@scenario("broker.id", "num.partitions", "message.max.bytes", "min.insync.replicas")
def broker_setting(brokers: Brokers, name: str) -> Plain:
    return _described(brokers, BROKER, "1", [name])


def _configured(brokers: Brokers) -> str:
    return brokers.topic(configs={"retention.ms": "1000"})


def _change(
    brokers: Brokers,
    resource_type: int,
    name: str,
    changes: list[tuple[str, int, str | None]],
    *,
    only_validated: bool = False,
) -> Plain:
    configs = [
        {"name": setting, "config_operation": operation, "value": value}
        for setting, operation, value in changes
    ]
    return brokers.ask(
        INCREMENTAL_ALTER_CONFIGS,
        resources=[{"resource_type": resource_type, "resource_name": name, "configs": configs}],
        validate_only=only_validated,
    )


def _described(
    brokers: Brokers,
    resource_type: int,
    name: str,
    names: list[str] | None,
    version: int | None = None,
    **values: Plain,
) -> Plain:
    resource = {"resource_type": resource_type, "resource_name": name, "configuration_keys": names}
    return brokers.ask(DESCRIBE_CONFIGS, version, resources=[resource], **values)


def _values(brokers: Brokers, topic: str) -> dict[str, str]:
    (result,) = _described(brokers, TOPIC, topic, None)["results"]
    return {entry["name"]: entry["value"] for entry in result["configs"]}
