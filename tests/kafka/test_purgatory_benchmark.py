"""The benchmark beside Kafka drives Kafka's own classes, at tiny sizes."""

from __future__ import annotations

import pytest

from benchmarks.harness.benchmark import benchmarks_of
from benchmarks.suites import kafka
from tests.benchmarks.test_suites import TINY, check_beside_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize("name", benchmarks_of("kafka"))
def test_kafka_itself_gives_all_figures(name: str) -> None:
    kafka.prepare()
    check_beside_kafka(name, lambda case: case.name == kafka.KAFKA)


@pytest.mark.usefixtures("jars")
def test_what_goes_wrong_ends_the_program_though_kafkas_threads_go_on() -> None:
    kafka.prepare()
    with pytest.raises(RuntimeError, match=r"(?s)Kafka, rest failed:.*IllegalArgumentException: rest"):
        kafka.jvm(TINY, "rest")
