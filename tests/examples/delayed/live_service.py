"""Instances of the service as processes, and what is sent to them and arrives."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from examples.delayed.clients import create_topics, producing, reading
from examples.delayed.demo.deliveries import Deliveries
from examples.delayed.demo.load import Arrivals, Load
from examples.delayed.demo.process import Instance
from examples.delayed.settings import Settings
from tests.examples.delayed.network import Network

PARTITIONS = 3


class Service:
    """Instances that share a group."""

    def __init__(self, settings: Settings, design: str, tasks: TaskGroup, network: Network | None) -> None:
        self.running: dict[str, Instance] = {}
        self._design = design
        self._settings = settings
        self._network = network
        self._tasks = tasks

    @classmethod
    @asynccontextmanager
    async def of(
        cls, settings: Settings, *names: str, design: str = "wheel", network: Network | None = None
    ) -> AsyncIterator[Service]:
        """If there is a `network`, the instance "a" reaches the brokers by it."""
        async with anyio.create_task_group() as tasks:
            service = cls(replace(settings, partitions=PARTITIONS), design, tasks, network)
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
            *(*program, "serve", "--design", self._design, "--bootstrap", settings.bootstrap),
            *("--directory", str(settings.directory / name), "--instance", name, "--statistics"),
            *("--topic", settings.topics.requests, "--session-timeout", str(settings.session_timeout)),
            *("--replication-factor", str(settings.replicas)),
            *("--levels", ",".join(str(level / 1000) for level in settings.levels)),
        ]
        async with Instance.running(arguments, settings.directory / f"{name}.log") as instance:
            await instance.line(f"{name} serves")
            task_status.started(instance)
            await instance.ended.wait()

    async def settled(self) -> None:
        """Return when each partition of the wheel has an owner."""
        if self._design != "wheel":
            return
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
        """The owner of most partitions, or the one that has forwarded most records in the other designs."""

        def rank(name: str) -> tuple[int, int]:
            statistics = self.running[name].statistics
            return statistics.partitions, statistics.forwarded

        return max(self.running, key=rank)

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
            created = await create_topics(settings.bootstrap, [target], PARTITIONS, settings.replicas)
            arrivals = Arrivals(consumer, target, created[target], deliveries)
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

    async def delivered(self, count: int) -> None:
        """Return when so many more records have arrived."""
        enough = self._deliveries.delivered + count
        while self._deliveries.delivered < enough:
            await self.arrivals.moved.wait()

    async def arrived(self) -> None:
        """Return when all that is sent has arrived, but for what is cancelled."""
        with anyio.fail_after(60):
            await self._sent.wait()
            while not self._deliveries.is_complete:
                await self.arrivals.moved.wait()


def _target(settings: Settings) -> str:
    return f"{settings.topics.requests}.out"
