"""Both clusters answer alike, except for the known differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from re import fullmatch
from typing import Final

import pytest

from examples.broker.testing import ThreadedCluster
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.kafka_cluster import KafkaCluster
from tests.kafka.scenarios.answers import differences
from tests.kafka.scenarios.brokers import RunningCluster
from tests.kafka.scenarios.clusters import EXAMPLE, KAFKA
from tests.kafka.scenarios.differences import DIFFERENCES, Difference
from tests.kafka.scenarios.subjects import SCENARIOS, SUBJECTS

TABLE: Final = Path(__file__).parents[3] / "docs" / "broker-protocol.md"


@dataclass(frozen=True, slots=True)
class RealBrokers:
    """Kafka's nodes, with the methods of a cluster of the example."""

    cluster: KafkaCluster

    @property
    def bootstrap_servers(self) -> str:
        return self.cluster.bootstrap_servers

    def kill(self, broker_id: int) -> None:
        self.cluster.nodes[broker_id].kill()

    def start(self, broker_id: int) -> None:
        self.cluster.nodes[broker_id].start()


@pytest.fixture(scope="module")
def clusters(jars: None) -> Iterator[tuple[RunningCluster, RunningCluster]]:
    with KafkaCluster.running(3, **KAFKA) as kafka, ThreadedCluster.running(EXAMPLE) as example:
        yield RealBrokers(kafka), example


def explanation(subject: str, name: str, where: str) -> Difference | None:
    """Return the first known difference of that scenario at that place."""
    return next(
        (
            known
            for known in DIFFERENCES.get(subject, ())
            if fullmatch(known.scenarios, name) and fullmatch(known.where, where)
        ),
        None,
    )


@pytest.mark.kafka
@pytest.mark.real_time
@pytest.mark.timeout(600)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_broker_example_answers_as_kafka_does(
    subject: str, clusters: tuple[RunningCluster, RunningCluster], figures: list[str]
) -> None:
    kafka, example = clusters
    found: dict[str, dict[str, tuple[Plain, Plain]]] = {}
    scenarios = {name: each for name, each in SCENARIOS.items() if each.subject == subject}
    for name, scenario in scenarios.items():
        try:
            differing = differences(scenario.answers(kafka), scenario.answers(example))
        except Exception as failure:
            failure.add_note(f"in {name}")
            raise
        if differing:
            found[name.removeprefix(f"{subject}-")] = differing
    figures.append(f"{subject}: {len(scenarios)} scenarios, of which {len(scenarios) - len(found)} agree")
    explained = {
        (name, where): explanation(subject, name, where)
        for name, entries in found.items()
        for where in entries
    }
    unexplained = {
        f"{name} {where}": found[name][where] for (name, where), known in explained.items() if known is None
    }
    assert unexplained == {}
    assert [known.row for known in DIFFERENCES.get(subject, ()) if known not in explained.values()] == []


def test_there_are_at_least_150_scenarios() -> None:
    assert len(SCENARIOS) >= 150
    assert {scenario.subject for scenario in SCENARIOS.values()} == {*SUBJECTS}


def test_the_documentation_has_each_difference() -> None:
    documented = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    known = [difference.row for each in DIFFERENCES.values() for difference in each]
    assert [row for row in known if row not in documented] == []
    assert [row for row in documented if row.count("|") == 5 and row not in known] == [
        "| what | Kafka | here | because |"
    ]
