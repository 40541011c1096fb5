"""Replicas of the wheel as processes, which are killed, paused, cut off and stopped."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from examples.delayed.demo.instances import Instance, Instances
from examples.delayed.demo.traffic import Traffic
from examples.delayed.settings import Settings
from examples.delayed.wheel.partition import WORKERS
from tests.examples.delayed.network import Network, behind
from tests.examples.delayed.running import PARTITIONS

pytestmark = [pytest.mark.real_time, pytest.mark.long]

MAX_TWICE = WORKERS * PARTITIONS
# Bytes of the value of a record of the load. Each store writes more.
VALUE_BYTES = 100
DELAYS = 0.05, 3.0


@asynccontextmanager
async def replicas(
    settings: Settings, names: str = "abc", kind: type[Instances] = Instances
) -> AsyncIterator[tuple[Instances, Traffic]]:
    """Instances that lose nothing, and forward nothing early or after an acknowledged cancel."""
    async with kind.of("wheel", settings, names) as instances, Traffic.of(settings) as traffic:
        yield instances, traffic
    assert list(traffic.deliveries.faults()) == []
    figures = traffic.deliveries.figures()
    assert figures.delivered + figures.cancelled == figures.scheduled


async def owns(instance: Instance) -> None:
    """Return when the group has given it a partition."""
    await instance.until(lambda: instance.statistics.partitions > 0)


async def test_killing_an_owner_and_pausing_another_loses_nothing_and_repeats_little(
    settings: Settings,
) -> None:
    async with replicas(settings) as (instances, traffic), anyio.create_task_group() as tasks:
        tasks.start_soon(traffic.send, 600, 1.0, DELAYS, 1)
        await traffic.moved.wait()
        instances.kill(instances.leader())
        paused = instances.running[instances.leader()].process
        paused.send_signal(signal.SIGSTOP)
        await traffic.arrived()
        twice = traffic.deliveries.figures().duplicates
        # The third one has forwarded all. The paused one still believes that it is the owner of a part.
        paused.send_signal(signal.SIGCONT)
        await instances.settled()
        await traffic.send(60, 0.1, DELAYS, 1)
    assert twice <= MAX_TWICE
    # A paused instance finishes what it was forwarding, and nothing else.
    assert traffic.deliveries.figures().duplicates - twice <= WORKERS


async def test_an_instance_that_was_cut_off_forwards_nothing_of_what_others_have_forwarded(
    settings: Settings,
) -> None:
    async with (
        Network.to(settings.bootstrap) as network,
        replicas(settings, kind=behind(network)) as (instances, traffic),
    ):
        stale = instances.running["a"]
        await owns(stale)
        before, first_due = stale.statistics.disk_bytes, time.time() + 6.0
        await traffic.send(300, 0.1, (6.0, 8.0), 1, cancelled=0)
        await stale.until(lambda: stale.statistics.disk_bytes > before + 300 * VALUE_BYTES)
        network.cut()
        assert time.time() < first_due, "the machine is too slow: the instance has begun to forward"
        await traffic.arrived()
        network.mend()
        await instances.settled()
        await traffic.send(60, 0.1, DELAYS, 1)
    assert traffic.deliveries.figures().duplicates == 0


async def test_cutting_off_an_instance_that_forwards_loses_nothing_and_repeats_little(
    settings: Settings,
) -> None:
    async with (
        Network.to(settings.bootstrap) as network,
        replicas(settings, kind=behind(network)) as (instances, traffic),
        anyio.create_task_group() as tasks,
    ):
        stale = instances.running["a"]
        await owns(stale)
        tasks.start_soon(traffic.send, 3_000, 2.0, DELAYS, 1)
        await stale.until(lambda: stale.statistics.forwarded > 0)
        network.cut()
        await traffic.arrived()
        network.mend()
        await instances.settled()
        await traffic.send(60, 0.1, DELAYS, 1)
    # What it was sending when the network was cut.
    assert traffic.deliveries.figures().duplicates <= MAX_TWICE


async def test_an_instance_that_is_stopped_hands_over_at_once_and_repeats_nothing(
    settings: Settings,
) -> None:
    async with replicas(settings, "ab") as (instances, traffic), anyio.create_task_group() as tasks:
        for instance in instances.running.values():
            # Otherwise the group would take partitions from the other one under load.
            await owns(instance)
        tasks.start_soon(traffic.send, 600, 1.0, DELAYS, 1)
        await traffic.moved.wait()
        name = instances.leader()
        await instances.stop(name)
        assert instances.log(name) == ""
    assert traffic.deliveries.figures().duplicates == 0


@pytest.mark.timeout(1800)
async def test_twenty_kills_of_the_leading_instance_lose_nothing(settings: Settings) -> None:
    kills, chance = 20, random.Random(17)
    async with replicas(settings) as (instances, traffic):
        for seed in range(kills):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(traffic.send, 200, 0.5, DELAYS, seed)
                await traffic.delivered(chance.randrange(1, 150))
                name = instances.leader()
                instances.kill(name)
                await instances.start(name)
            await traffic.arrived()
            await instances.settled()
    assert traffic.deliveries.figures().scheduled == 200 * kills
    assert traffic.deliveries.figures().duplicates <= kills * MAX_TWICE
