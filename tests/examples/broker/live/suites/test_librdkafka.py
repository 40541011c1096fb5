"""librdkafka's own suite against these brokers: all of its tests that apply pass.

Tests that need no broker are left out by the suite's own flag. ``NOT_APPLICABLE`` has the others.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from examples.broker.cluster import ClusterConfig
from examples.broker.controller.settings import ClusterDefaults
from tests.examples.broker.live.clients.missing_dependency import skip_for_missing
from tests.examples.broker.live.live_cluster import LiveCluster
from tests.examples.broker.live.suites.librdkafka_suite import (
    REPOSITORY,
    LibrdkafkaSuite,
    Unavailable,
    results,
)

pytestmark = [pytest.mark.real_time, pytest.mark.long, pytest.mark.timeout(3600)]

# The version of librdkafka for which the lists below were made.
KNOWN_VERSION: Final = "2.0.2"
BUILD: Final = REPOSITORY / "build" / "librdkafka"

APPLICABLE: Final = """
    0001 0002 0003 0005 0007 0008 0011 0012 0013 0014 0015 0016 0017 0018 0019 0020 0021 0022
    0026 0029 0030 0031 0033 0034 0035 0036 0038 0039 0040 0041 0042 0044 0045 0048 0049 0050 0051
    0054 0055 0056 0057 0059 0060 0061 0063 0064 0065 0067 0068 0069 0070 0073 0075 0076
    0083 0084 0085 0086 0088 0089 0090 0091 0092 0093 0094 0099 0102 0112 0113 0114 0118 0122
    0123 0125 0130 0132 0137
"""

NOT_APPLICABLE: Final = {
    "0052": "it writes records in the formats before Kafka 0.11",
    "0053": "it needs RapidJSON, and tests nothing of a broker",
    "0077": "it tests compaction",
    "0097": "it needs TLS",
    "0098": "it reads transactions",
    "0101": "it needs racks, and followers that consumers read from",
    "0103": "it tests transactions",
    "0107": "librdkafka 2.0.2 never ends a consumer whose partitions are gone (librdkafka#4724)",
    "0110": "it needs RapidJSON, and tests nothing of a broker",
    "0115": "it needs authorization",
    "0119": "it needs authorization",
    "0126": "it needs authentication",
    "0129": "it reads transactions",
    "0135": "it needs authentication",
}

# The parts of the suite's test of administration. Its other parts are about access control lists, and alter
# a setting of a broker.
ADMINISTRATION: Final = (
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "DescribeConfigs",
    "DeleteRecords",
    "ListConsumerGroups",
    "DescribeConsumerGroups",
    "DeleteGroups",
    "DeleteConsumerGroupOffsets",
    "AlterConsumerGroupOffsets",
    "ListConsumerGroupOffsets",
)

# What the suite asks of its cluster (tests/scenarios in librdkafka).
DEFAULTS: Final = ClusterDefaults(num_partitions=4, default_replication_factor=3)


@pytest.fixture(scope="module")
def suite() -> LibrdkafkaSuite:
    try:
        suite = LibrdkafkaSuite.built(BUILD)
    except Unavailable as missing:
        skip_for_missing(str(missing))
    if suite.version != KNOWN_VERSION:
        pytest.skip(f"Debian has librdkafka {suite.version}, and the lists here are for {KNOWN_VERSION}")
    return suite


@pytest.fixture(scope="module")
def brokers() -> Iterator[LiveCluster]:
    with LiveCluster.running(ClusterConfig(port=0, defaults=DEFAULTS)) as cluster:
        yield cluster


@pytest.fixture
def brokers_without_auto_creation() -> Iterator[LiveCluster]:
    defaults = replace(DEFAULTS, auto_create_topics_enable=False)
    with LiveCluster.running(ClusterConfig(port=0, defaults=defaults)) as cluster:
        yield cluster


def check(
    suite: LibrdkafkaSuite,
    directory: Path,
    cluster: LiveCluster,
    number: str,
    *,
    quick: bool = True,
    **settings: str,
) -> None:
    """Run the tests of one number, and find that all have passed, and at least one."""
    output = suite.run(directory, cluster.bootstrap_servers, number, settings, quick=quick)
    found = results(output)
    assert set(found.values()) == {"PASSED"}, f"{found}\n{output[-5000:]}"


@pytest.mark.parametrize("number", APPLICABLE.split())
def test_a_test_of_the_suite_passes(
    suite: LibrdkafkaSuite, tmp_path: Path, brokers: LiveCluster, number: str
) -> None:
    check(suite, tmp_path, brokers, number)


def test_a_consumer_limits_the_bytes_of_a_fetch(
    suite: LibrdkafkaSuite, tmp_path: Path, brokers: LiveCluster
) -> None:
    """It is not one of the suite's quick tests."""
    check(suite, tmp_path, brokers, "0082", quick=False)


@pytest.mark.parametrize("part", ADMINISTRATION)
def test_a_part_of_the_test_of_administration_passes(
    suite: LibrdkafkaSuite, tmp_path: Path, brokers: LiveCluster, part: str
) -> None:
    check(suite, tmp_path, brokers, "0081", SUBTESTS=f"do_test_{part}:")


def test_consumers_create_topics_where_they_allow_it(
    suite: LibrdkafkaSuite, tmp_path: Path, brokers: LiveCluster
) -> None:
    """For newer brokers, the suite expects access control lists, too."""
    check(suite, tmp_path, brokers, "0109", TEST_KAFKA_VERSION="2.0.0")


def test_a_producer_waits_for_a_topic_that_is_created_late(
    suite: LibrdkafkaSuite, tmp_path: Path, brokers_without_auto_creation: LiveCluster
) -> None:
    check(suite, tmp_path, brokers_without_auto_creation, "0111", TEST_SCENARIO="noautocreate")


def test_each_test_with_a_broker_is_run_or_has_a_reason(suite: LibrdkafkaSuite) -> None:
    listed = {*APPLICABLE.split()} | NOT_APPLICABLE.keys() | {"0081", "0082", "0109", "0111"}
    assert listed == suite.numbers
