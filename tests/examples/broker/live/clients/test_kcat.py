"""kcat, with Debian's librdkafka, which is older than the one of confluent-kafka."""

import json
import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.examples.broker.live.clients.client_interface import CODECS, PATIENCE
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.clients.missing_dependency import skip_for_missing
from tests.examples.broker.live.live_cluster import LiveCluster

pytestmark = pytest.mark.real_time

Kcat = Callable[..., str]


@pytest.fixture
def kcat(shared_cluster: LiveCluster) -> Kcat:
    """Runs kcat to its end, and returns its output."""
    executable = shutil.which("kcat")
    if executable is None:
        skip_for_missing("kcat is not installed (Debian's package of that name)")

    def run(*arguments: str, typed: str = "") -> str:
        command = [executable, "-b", shared_cluster.bootstrap_servers, *arguments]
        done = subprocess.run(command, input=typed, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_kcat_reads_what_it_wrote_with_every_codec(kcat: Kcat, topic: LiveTopic) -> None:
    lines = [f"key-{number}:{'value ' * 50}{number}" for number in range(3)]
    for codec in CODECS:
        settings = ["-z", codec, "-H", f"codec={codec}", "-X", "enable.idempotence=true"]
        kcat("-P", "-t", topic.name, "-p", "0", "-K", ":", *settings, typed="\n".join(lines))
    assert set(topic.codecs()) == set(CODECS.values())
    printed = kcat("-C", "-t", topic.name, "-o", "beginning", "-e", "-q", "-f", "%o %h %k:%s\n")
    assert printed.splitlines() == [
        f"{offset} codec={codec} {line}"
        for offset, (codec, line) in enumerate((codec, line) for codec in CODECS for line in lines)
    ]


def test_kcat_reads_as_a_member_of_a_group_and_goes_on_from_its_commit(kcat: Kcat, topic: LiveTopic) -> None:
    kcat("-P", "-t", topic.name, "-p", "0", typed="one\ntwo\nthree\nfour")
    group = ["-q", "-X", "auto.offset.reset=earliest", "-c", "2", "-G", "cats", topic.name]
    assert kcat(*group) == "one\ntwo\n"
    assert kcat(*group) == "three\nfour\n"


def test_kcat_lists_the_cluster(kcat: Kcat, topic: LiveTopic, shared_cluster: LiveCluster) -> None:
    listed = json.loads(kcat("-L", "-J"))
    assert {broker["name"] for broker in listed["brokers"]} == set(
        shared_cluster.bootstrap_servers.split(",")
    )
    (described,) = (entry for entry in listed["topics"] if entry["topic"] == topic.name)
    (partition,) = described["partitions"]
    assert partition["leader"] == topic.state.leader
    assert {replica["id"] for replica in partition["replicas"]} == set(topic.state.replicas)
    assert {replica["id"] for replica in partition["isrs"]} == set(topic.state.in_sync)
