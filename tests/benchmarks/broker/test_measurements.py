"""Each measurement of each cluster, with little to do, in the processes that are really measured."""

from __future__ import annotations

import os
import time

import pytest

from benchmarks.broker import idle, processes, throughput, wake
from benchmarks.broker.clusters import CLUSTERS, EXAMPLE, MOCK, Cluster

pytestmark = pytest.mark.real_time

needs_linux = pytest.mark.skipif(not processes.AVAILABLE, reason="there is no /proc")


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: cluster.name)
def test_a_record_is_produced_and_wakes(cluster: Cluster) -> None:
    sample = wake.measure(cluster, max_wait=0.1, wakes=3)
    assert 0 < sample["p50_ms"] <= sample["p99_ms"]


def test_the_example_wakes_who_waits_and_does_not_let_the_wait_pass() -> None:
    assert wake.measure(EXAMPLE, max_wait=30.0, wakes=1)["p99_ms"] < 15_000


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: cluster.name)
def test_records_are_acknowledged(cluster: Cluster) -> None:
    sample = throughput.measure(cluster, records=1500, size=100)
    assert sample["records_per_second"] > 0
    assert sample["mb_per_second"] == pytest.approx(sample["records_per_second"] * 100 / 1e6)


@needs_linux
@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: cluster.name)
def test_idle_polls_are_weighed_and_those_of_the_example_woken(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "SETTLED", 0.2)
    sample = idle.measure(cluster, polls=60, seconds=0.2)
    assert sample["processor_ms"] >= 0
    assert ("wake_p50_ms" in sample) is (cluster is EXAMPLE)


def test_a_cluster_that_does_not_start_says_why() -> None:
    broken = Cluster("broken", (*EXAMPLE.command, "--brokers", "none"))
    with (
        pytest.raises(RuntimeError, match=r"(?s)broken did not start:.*must be a whole number"),
        broken.running(),
    ):
        pass


def test_a_cluster_ends_with_its_block() -> None:
    with MOCK.running() as running:
        os.kill(running.process_id, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(running.process_id, 0)


@needs_linux
def test_a_process_is_told_what_it_used() -> None:
    before = processes.processor_seconds(os.getpid())
    began = time.process_time()
    while time.process_time() - began < 0.1:
        pass
    assert 0.08 <= processes.processor_seconds(os.getpid()) - before < 1
    held = bytearray(b"x") * (64 << 20)
    assert processes.resident_bytes(os.getpid()) > len(held)
