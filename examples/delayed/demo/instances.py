"""Instances of the service, as processes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from examples.delayed.demo.child import Child
from examples.delayed.forwarder import Statistics
from examples.delayed.settings import Settings


class Instance(Child):
    """An instance of the service, which counts what it does."""

    statistics = Statistics()

    def took(self, line: str) -> None:
        if line.startswith("{"):
            self.statistics = Statistics(**json.loads(line))
        else:
            super().took(line)


@dataclass
class Instances:
    """Instances of one design. They share the partitions, and each has a directory and a log of its own."""

    design: str
    settings: Settings
    tasks: TaskGroup
    running: dict[str, Instance] = field(default_factory=dict)
    _begun: list[Instance] = field(default_factory=list)

    @classmethod
    @asynccontextmanager
    async def of(cls, design: str, settings: Settings, names: Iterable[str]) -> AsyncIterator[Self]:
        """Start instances, and stop those that still run at the end of the block.

        Raises RuntimeError if one fails.
        """
        async with anyio.create_task_group() as tasks:
            instances = cls(design, settings, tasks)
            async with anyio.create_task_group() as starting:
                for name in names:
                    starting.start_soon(instances.start, name)
            await instances.settled()
            yield instances
            async with anyio.create_task_group() as stopping:
                for name in list(instances.running):
                    stopping.start_soon(instances.stop, name)

    async def start(self, name: str) -> None:
        """Return when the instance takes part in the group."""
        self.running[name] = await self.tasks.start(self._run, name)

    async def stop(self, name: str) -> None:
        """Stop an instance in good order. Raises RuntimeError if it has failed."""
        status = await self.running.pop(name).stop()
        if status:
            raise RuntimeError(f"instance {name} ended with status {status}: {self.log(name)[-300:]}")

    def kill(self, name: str) -> None:
        self.running.pop(name).process.kill()

    def leader(self) -> str:
        """The owner of most partitions, or the one that has forwarded most records in the other designs."""

        def rank(name: str) -> tuple[int, int]:
            statistics = self.running[name].statistics
            return statistics.partitions, statistics.forwarded

        return max(self.running, key=rank)

    async def settled(self) -> None:
        """Return when each partition of the wheel has an owner."""
        if self.design == "wheel":
            for instance in self.running.values():
                await instance.until(lambda: self._owned() == self.settings.partitions)

    @property
    def written(self) -> int:
        """Bytes that all instances have written, to Kafka and to their files."""
        return sum(each.statistics.sent_bytes + each.statistics.disk_bytes for each in self._begun)

    def log(self, name: str) -> str:
        return (self.settings.directory / f"{name}.log").read_text()

    def program(self, name: str) -> list[str]:
        """The arguments of ``python -m`` before the command."""
        return ["examples.delayed"]

    def _owned(self) -> int:
        return sum(instance.statistics.partitions for instance in self.running.values())

    async def _run(self, name: str, *, task_status: TaskStatus[Instance]) -> None:
        settings = self.settings
        arguments = [
            *(*self.program(name), "serve", "--design", self.design, "--bootstrap", settings.bootstrap),
            *("--directory", str(settings.directory / name), "--instance", name, "--statistics"),
            *("--topic", settings.topics.requests, "--session-timeout", str(settings.session_timeout)),
            *("--partitions", str(settings.partitions), "--replication-factor", str(settings.replicas)),
            *("--levels", ",".join(str(level / 1000) for level in settings.levels)),
        ]
        async with Instance.running(arguments, settings.directory / f"{name}.log") as instance:
            self._begun.append(instance)
            await instance.line(f"{name} serves")
            task_status.started(instance)
            await instance.ended.wait()
