"""Replicas of the wheel as processes, which are killed, paused, cut off and stopped."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup, TaskStatus

from examples.delayed.clients import create_topics, producing, reading
from examples.delayed.demo.deliveries import Deliveries
from examples.delayed.demo.load import Arrivals, Load
from examples.delayed.demo.process import Instance
from examples.delayed.settings import Settings
from examples.delayed.wheel.partition import WORKERS
from tests.examples.delayed.network import Network

pytestmark = [pytest.mark.real_time]

PARTITIONS = 3
MAX_TWICE = WORKERS * PARTITIONS
# Bytes of the value of a record of the load. Each store writes more.
VALUE_BYTES = 100


class Service:
    """Instances that share a group."""

    def __init__(self, settings: Settings, tasks: TaskGroup, network: Network | None) -> None:
        self.running: dict[str, Instance] = {}
        self._settings = settings
        self._network = network
        self._tasks = tasks

    @classmethod
    @asynccontextmanager
    async def of(
        cls, settings: Settings, *names: str, network: Network | None = None
    ) -> AsyncIterator[Service]:
        """If there is a `network`, the instance "a" reaches the brokers by it."""
        async with anyio.create_task_group() as tasks:
            service = cls(replace(settings, partitions=PARTITIONS), tasks, network)
            for name in names:
                await service.start(name)
            await service.settled()
            yield service
            for name in list(service.running):
                assert await service.stop(name) == 0, service.log(name)
            tasks.cancel_scope.cancel()

    async def start(self, name: str) -> None:
        self.running[name] = await self._tasks.start(self._run, name)

    async def _run(self, name: str, *, task_status: TaskStatus[Instance]) -> None:
        settings = self._settings
        program = ["examples.delayed"]
        if self._network is not None and name == "a":
            program = ["tests.examples.delayed.behind_proxies", json.dumps(self._network.ports)]
        arguments = [
            *(*program, "serve", "--design", "wheel", "--bootstrap", settings.bootstrap),
            *("--directory", str(settings.directory / name), "--instance", name, "--statistics"),
            *("--topic", settings.topics.requests, "--session-timeout", "2", "--replication-factor", "1"),
        ]
        async with Instance.running(arguments, settings.directory / f"{name}.log") as instance:
            await instance.line(f"{name} serves")
            task_status.started(instance)
            await instance.ended.wait()

    async def settled(self) -> None:
        """Return when each partition has an owner."""
        for instance in self.running.values():
            await instance.until(
                lambda: sum(each.statistics.partitions for each in self.running.values()) == PARTITIONS
            )

    async def owner(self, name: str) -> Instance:
        """The instance with this name, when it is the owner of its share of the partitions."""
        instance = self.running[name]
        await instance.until(lambda: instance.statistics.partitions == PARTITIONS // len(self.running))
        return instance

    def leader(self) -> str:
        return max(self.running, key=lambda name: self.running[name].statistics.partitions)

    def kill(self, name: str) -> None:
        self.running.pop(name).process.kill()

    async def stop(self, name: str) -> int:
        return await self.running.pop(name).stop()

    def log(self, name: str) -> str:
        return Path(self._settings.directory / f"{name}.log").read_text()


class Traffic:
    """Sends records to the service, and reads what arrives."""

    def __init__(self, settings: Settings, deliveries: Deliveries, producer: Any, arrivals: Arrivals) -> None:
        self.arrivals = arrivals
        self._settings = settings
        self._deliveries = deliveries
        self._producer = producer
        self._sent = anyio.Event()

    @classmethod
    @asynccontextmanager
    async def of(cls, settings: Settings, deliveries: Deliveries) -> AsyncIterator[Traffic]:
        """At the end of the block, all that was sent has arrived."""
        target = _target(settings)
        async with reading(settings.bootstrap) as consumer, producing(settings.bootstrap) as producer:
            numbers = (await create_topics(settings.bootstrap, [target], PARTITIONS, 1))[target]
            arrivals = Arrivals(consumer, target, numbers, deliveries)
            traffic = cls(settings, deliveries, producer, arrivals)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(arrivals.read)
                yield traffic
                await traffic.arrived()
                tasks.cancel_scope.cancel()
            await arrivals.read_to_end()

    async def send(
        self,
        messages: int,
        seconds: float,
        seed: int = 1,
        delays: tuple[float, float] = (0.05, 3.0),
        cancelled: float = 0.1,
    ) -> None:
        load = Load(messages, seconds, *delays, seed, self._deliveries, cancelled)
        self._sent = anyio.Event()
        await load.send(self._producer, self._settings.topics, _target(self._settings))
        self._sent.set()

    async def arrived(self) -> None:
        """Return when all that is sent has arrived, but for what is cancelled."""
        with anyio.fail_after(60):
            await self._sent.wait()
            while not self._deliveries.is_complete:
                await self.arrivals.moved.wait()


def _target(settings: Settings) -> str:
    return f"{settings.topics.requests}.out"


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
