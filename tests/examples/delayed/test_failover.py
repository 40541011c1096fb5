"""Replicas of the wheel as processes, which are killed, paused, cut off and stopped."""

from __future__ import annotations

import random
import signal
import time

import anyio
import pytest

from examples.delayed.demo.deliveries import Deliveries
from examples.delayed.settings import Settings
from examples.delayed.wheel.partition import WORKERS
from tests.examples.delayed.live_service import PARTITIONS, Service, Traffic
from tests.examples.delayed.network import Network

pytestmark = [pytest.mark.real_time]

MAX_TWICE = WORKERS * PARTITIONS
# Bytes of the value of a record of the load. Each store writes more.
VALUE_BYTES = 100


@pytest.mark.long
async def test_killing_an_owner_and_pausing_another_loses_nothing_and_repeats_little(
    settings: Settings,
) -> None:
    deliveries = Deliveries()
    async with (
        Service.of(settings, "a", "b", "c") as service,
        Traffic.of(settings, deliveries) as traffic,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(traffic.send, 600, 1.0)
        await traffic.arrivals.moved.wait()
        service.kill(service.leader())
        paused = service.running[service.leader()].process
        paused.send_signal(signal.SIGSTOP)
        await traffic.arrived()
        twice = deliveries.figures().duplicates
        # The third one has forwarded all. The paused one still believes that it is the owner of a part.
        paused.send_signal(signal.SIGCONT)
        await service.settled()
        await traffic.send(60, 0.1)
    assert list(deliveries.faults()) == []
    figures = deliveries.figures()
    assert figures.delivered + figures.cancelled == 660
    assert twice <= MAX_TWICE
    # A paused instance finishes what it was forwarding, and nothing else.
    assert figures.duplicates - twice <= WORKERS


@pytest.mark.long
async def test_an_instance_that_was_cut_off_forwards_nothing_of_what_others_have_forwarded(
    settings: Settings,
) -> None:
    deliveries = Deliveries()
    async with (
        Network.to(settings.bootstrap) as network,
        Service.of(settings, "a", "b", "c", network=network) as service,
        Traffic.of(settings, deliveries) as traffic,
    ):
        stale = await service.owner("a")
        before, first_due = stale.statistics.disk_bytes, time.time() + 6.0
        await traffic.send(300, 0.1, delays=(6.0, 8.0), cancelled=0)
        await stale.until(lambda: stale.statistics.disk_bytes > before + 300 * VALUE_BYTES)
        network.cut()
        assert time.time() < first_due, "the machine is too slow: the instance has begun to forward"
        await traffic.arrived()
        network.mend()
        await service.settled()
        await traffic.send(60, 0.1)
    assert list(deliveries.faults()) == []
    assert deliveries.figures().duplicates == 0
    assert deliveries.figures().scheduled == 360


@pytest.mark.long
async def test_cutting_off_an_instance_that_forwards_loses_nothing_and_repeats_little(
    settings: Settings,
) -> None:
    deliveries = Deliveries()
    async with (
        Network.to(settings.bootstrap) as network,
        Service.of(settings, "a", "b", "c", network=network) as service,
        Traffic.of(settings, deliveries) as traffic,
        anyio.create_task_group() as tasks,
    ):
        stale = await service.owner("a")
        tasks.start_soon(traffic.send, 3_000, 2.0)
        await stale.until(lambda: stale.statistics.forwarded > 0)
        network.cut()
        await traffic.arrived()
        network.mend()
        await service.settled()
        await traffic.send(60, 0.1)
    assert list(deliveries.faults()) == []
    figures = deliveries.figures()
    assert figures.delivered + figures.cancelled == figures.scheduled == 3_060
    # What it was sending when the network was cut.
    assert figures.duplicates <= MAX_TWICE


@pytest.mark.long
async def test_an_instance_that_is_stopped_hands_over_at_once_and_repeats_nothing(
    settings: Settings,
) -> None:
    deliveries = Deliveries()
    async with Service.of(settings, "a", "b") as service:
        async with Traffic.of(settings, deliveries) as traffic, anyio.create_task_group() as tasks:
            tasks.start_soon(traffic.send, 600, 1.0)
            await traffic.arrivals.moved.wait()
            name = service.leader()
            assert await service.stop(name) == 0
        assert service.log(name) == ""
    assert list(deliveries.faults()) == []
    assert deliveries.figures().duplicates == 0


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_twenty_kills_of_the_leading_instance_lose_nothing(settings: Settings) -> None:
    kills, deliveries, chance = 20, Deliveries(), random.Random(17)
    async with (
        Service.of(settings, "a", "b", "c") as service,
        Traffic.of(settings, deliveries) as traffic,
    ):
        for seed in range(kills):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(traffic.send, 200, 0.5, seed)
                enough = deliveries.figures().delivered + chance.randrange(1, 150)
                while deliveries.figures().delivered < enough:
                    await traffic.arrivals.moved.wait()
                name = service.leader()
                service.kill(name)
                await service.start(name)
            await traffic.arrived()
            await service.settled()
    assert list(deliveries.faults()) == []
    figures = deliveries.figures()
    assert figures.delivered + figures.cancelled == 200 * kills
    assert figures.duplicates <= kills * MAX_TWICE
