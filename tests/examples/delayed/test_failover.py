"""Replicas of the wheel as processes, which are killed, paused and stopped."""

from __future__ import annotations

import random
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from examples.delayed.clients import create_topics, producing, reading
from examples.delayed.demo.ledger import Ledger
from examples.delayed.demo.load import Arrivals, Load
from examples.delayed.demo.process import Instance
from examples.delayed.settings import Settings
from examples.delayed.wheel.partition import WORKERS

pytestmark = [pytest.mark.real_time]

PARTITIONS = 3
MAX_TWICE = WORKERS * PARTITIONS


class Service:
    """Instances that share a group."""

    def __init__(self, settings: Settings, stack: AsyncExitStack) -> None:
        self.running: dict[str, Instance] = {}
        self._settings = settings
        self._stack = stack

    @classmethod
    @asynccontextmanager
    async def of(cls, settings: Settings, *names: str) -> AsyncIterator[Service]:
        async with AsyncExitStack() as stack:
            service = cls(replace(settings, partitions=PARTITIONS), stack)
            for name in names:
                await service.start(name)
            await service.settled()
            yield service
            for name in list(service.running):
                assert await service.stop(name) == 0, service.log(name)

    async def start(self, name: str) -> None:
        settings = self._settings
        arguments = [
            *("examples.delayed", "serve", "--design", "wheel", "--bootstrap", settings.bootstrap),
            *("--directory", str(settings.directory / name), "--instance", name, "--statistics"),
            *("--topic", settings.topics.requests, "--session-timeout", "2", "--replication-factor", "1"),
        ]
        log = self._settings.directory / f"{name}.log"
        instance = await self._stack.enter_async_context(Instance.running(arguments, log))
        await instance.line(f"{name} serves")
        self.running[name] = instance

    async def settled(self) -> None:
        """Return when each partition has an owner."""
        for instance in self.running.values():
            await instance.until(
                lambda: sum(each.statistics.partitions for each in self.running.values()) == PARTITIONS
            )

    def leader(self) -> str:
        return max(self.running, key=lambda name: self.running[name].statistics.partitions)

    def kill(self, name: str) -> None:
        self.running.pop(name).process.kill()

    async def stop(self, name: str) -> int:
        return await self.running.pop(name).stop()

    def log(self, name: str) -> str:
        return Path(self._settings.directory / f"{name}.log").read_text()


@asynccontextmanager
async def load(settings: Settings, ledger: Ledger, messages: int, seconds: float) -> AsyncIterator[Arrivals]:
    """Records are sent in the block, and have arrived at its end."""
    target = f"{settings.topics.requests}.out"
    async with reading(settings.bootstrap) as consumer, producing(settings.bootstrap) as producer:
        numbers = (await create_topics(settings.bootstrap, [target], PARTITIONS, 1))[target]
        arrivals = Arrivals(consumer, target, numbers, ledger)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(arrivals.read)
            async with anyio.create_task_group() as sending:
                sending.start_soon(
                    Load(messages, seconds, 0.05, 3.0, 1, ledger).send, producer, settings.topics, target
                )
                yield arrivals
            with anyio.fail_after(60):
                while not ledger.is_complete:
                    await arrivals.moved.wait()
            tasks.cancel_scope.cancel()
        await arrivals.read_to_end()


@pytest.mark.slow
async def test_killing_an_owner_and_pausing_another_loses_nothing_and_repeats_little(
    settings: Settings,
) -> None:
    ledger, later = Ledger(), Ledger()
    async with Service.of(settings, "a", "b", "c") as service:
        async with load(settings, ledger, 600, 1.0) as arrivals:
            await arrivals.moved.wait()
            service.kill(service.leader())
            name = service.leader()
            service.running[name].process.send_signal(signal.SIGSTOP)
        # The third one has forwarded all. The paused one still believes that it is the owner of a part.
        service.running[name].process.send_signal(signal.SIGCONT)
        await service.settled()
        async with load(settings, later, 60, 0.1):
            pass
    assert list(ledger.faults()) == []
    figures = ledger.figures()
    assert figures.delivered == 600
    assert figures.duplicates <= MAX_TWICE
    # The second ledger has both loads. A paused instance finishes what it was forwarding, and nothing else.
    assert later.figures().duplicates - figures.duplicates <= WORKERS
    assert later.is_complete


@pytest.mark.slow
async def test_an_instance_that_is_stopped_hands_over_at_once_and_repeats_nothing(
    settings: Settings,
) -> None:
    ledger = Ledger()
    async with Service.of(settings, "a", "b") as service:
        async with load(settings, ledger, 600, 1.0) as arrivals:
            await arrivals.moved.wait()
            name = service.leader()
            assert await service.stop(name) == 0
        assert service.log(name) == ""
    assert list(ledger.faults()) == []
    assert ledger.figures().duplicates == 0


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_twenty_kills_of_the_leading_instance_lose_nothing(settings: Settings) -> None:
    kills, ledger, chance = 20, Ledger(), random.Random(17)
    async with (
        Service.of(settings, "a", "b", "c") as service,
        load(settings, ledger, 100 * kills, 2.0 * kills) as arrivals,
    ):
        for _ in range(kills):
            for _ in range(chance.randrange(1, 20)):
                await arrivals.moved.wait()
            name = service.leader()
            service.kill(name)
            await service.start(name)
            await service.settled()
    assert list(ledger.faults()) == []
    assert ledger.figures().duplicates <= kills * MAX_TWICE
