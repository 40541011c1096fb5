"""Signals between workers: the plan, and each carrier."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.harness import processes
from benchmarks.harness.benchmark import Setting
from benchmarks.suites import signals
from benchmarks.suites.signals import CARRIERS
from benchmarks.suites.signals.servers import PATH
from benchmarks.suites.signals.worker import Plan

PROGRAMS = {"redis": "redis-server", "nats": "nats-server", "postgres": "pg_ctl"}


def test_each_topic_has_one_wait_and_gets_one_record() -> None:
    plan = Plan(workers=3, topics=20, rate=10.0)
    waits = [topic for number in range(3) for topic in plan.waits(number)]
    records = sorted(record for number in range(3) for record in plan.records(number))
    assert sorted(topic for _, topic in records) == sorted(waits)
    assert len(set(waits)) == 20
    assert [after for after, _ in records] == [turn / 10 for turn in range(20)]
    assert all(plan.records(number) for number in range(3))


# With 400 waits, there are a second of records and two cuts.
@pytest.mark.long
@pytest.mark.real_time
@pytest.mark.skipif(not processes.AVAILABLE, reason="there is no /proc")
@pytest.mark.parametrize("name", CARRIERS)
def test_every_wait_is_over_while_nothing_is_cut(name: str) -> None:
    for server in CARRIERS[name][1]:
        if shutil.which(PROGRAMS[server], path=PATH) is None:
            pytest.skip(f"{PROGRAMS[server]} is not installed")
    sample = signals.measure(Setting(builds=("interpreted",), sizes=(400,), seconds=0.1), name)
    assert sample["calm_lost"] == 0
    assert 0 < sample["p50_ms"] <= sample["p99_ms"]
    if name.startswith("purgatory.relay"):
        assert sample["lost"] == 0
