"""A run of one design: instances, a backlog, load, a kill in the middle, and what came of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]  # has no types

from examples.delayed.clients import create_topics, producing, reading
from examples.delayed.demo.deliveries import Deliveries, Figures
from examples.delayed.demo.load import Arrivals, Load
from examples.delayed.demo.process import Brokers, Child, Instance
from examples.delayed.topics import Topics

# Seconds without an arrival, after which no more are expected. With a backlog, requeue takes as long to come
# to a record again.
_SILENCE: Final = 60.0
# Partitions of each topic.
_PARTITIONS: Final = 3
# The records of the backlog are due after so many seconds, log-uniform.
BACKLOG_DELAYS: Final = 3600.0, 7200.0
# Seconds in which it is sent: as fast as the cluster takes it.
_AT_ONCE: Final = 0.1
# Seconds until the wheel has moved the backlog from its log to its files. It begins every ten seconds.
_MOVED: Final = 15.0


@dataclass(frozen=True, slots=True)
class Plan:
    """`messages` records are sent in `seconds`, and are due after `least` to `most` seconds.

    Before that, `backlog` records are sent that are due much later. `levels` are in seconds. A share of the
    records, `cancelled`, is cancelled before they are due. With `kill`, an instance is killed in the middle,
    if others take over.
    """

    design: str
    messages: int
    seconds: float
    most: float
    least: float = 0.1
    levels: tuple[float, ...] = (0.5, 1, 2, 4, 8)
    backlog: int = 0
    cancelled: float = 0.0
    kill: bool = True
    session_timeout: float = 2.0
    instances: int = 3
    seed: int = 1

    @property
    def topics(self) -> Topics:
        return Topics(f"delayed.{self.design}")

    @property
    def target(self) -> str:
        return f"target.{self.design}"

    @property
    def all_levels(self) -> list[float]:
        """The levels, and the longest delays: no record waits for its level several times."""
        return sorted({*self.levels, self.most, *(BACKLOG_DELAYS[1:] if self.backlog else ())})

    @property
    def is_replicated(self) -> bool:
        """Whether each instance reads each record, and each partition has an owner."""
        return self.design == "wheel"

    @property
    def kills(self) -> bool:
        """Whether the instance that leads most partitions is killed. Replicas of the wheel take over."""
        return self.kill and self.is_replicated


@dataclass(frozen=True, slots=True)
class Outcome:
    """`written` is bytes per delivered record: to Kafka by the service, and to its files."""

    design: str
    figures: Figures
    written: float
    killed: str | None
    faults: tuple[str, ...]


class Round:
    """Runs a plan. Its attributes can be shown meanwhile.

    The events are set when all instances have started, when the backlog waits and the load begins, and when
    all of the load has arrived.
    """

    def __init__(self, plan: Plan, brokers: Brokers, directory: Path) -> None:
        self.plan = plan
        self.deliveries = Deliveries()
        self.instances: dict[str, Instance] = {}
        self.killed: str | None = None
        self.started, self.loading, self.arrived = anyio.Event(), anyio.Event(), anyio.Event()
        self._brokers = brokers
        self._bootstrap = brokers.bootstrap
        self._directory = directory
        self._statuses: dict[str, int] = {}

    async def run(self) -> Outcome:
        """Return the outcome when each record has arrived, or none arrives any more.

        Raises RuntimeError if an instance does not start.
        """
        plan = self.plan
        load = Load(
            plan.messages, plan.seconds, plan.least, plan.most, plan.seed, self.deliveries, plan.cancelled
        )
        numbers = (await create_topics(self._bootstrap, [plan.target], _PARTITIONS, 3))[plan.target]
        async with reading(self._bootstrap) as consumer, producing(self._bootstrap) as producer:
            arrivals = Arrivals(consumer, plan.target, numbers, self.deliveries)
            async with self._serving(), anyio.create_task_group() as tasks:
                self.started.set()
                tasks.start_soon(arrivals.read)
                if plan.backlog:
                    await self._pile_up(producer)
                self.loading.set()
                async with anyio.create_task_group() as sending:
                    sending.start_soon(load.send, producer, plan.topics, plan.target)
                    # Half of the records are sent then, and most of them are pending.
                    await anyio.sleep(plan.seconds / 2)
                    if plan.kills:
                        self._kill_leader()
                await self._all_arrived(arrivals)
                self.arrived.set()
                tasks.cancel_scope.cancel()
            # The last instance to stop may have sent something twice.
            await arrivals.read_to_end()
        return Outcome(
            plan.design, self.deliveries.figures(), self.written, self.killed, tuple(self._faults())
        )

    @property
    def read(self) -> int:
        """Records that the service has read: where each instance reads all, those that all have read."""
        counts = [instance.statistics.read for instance in self.instances.values()]
        return min(counts) if self.plan.is_replicated else sum(counts)

    @property
    def written_bytes(self) -> int:
        """Bytes that the service has written, to Kafka and to its files."""
        counts = [instance.statistics for instance in self.instances.values()]
        return sum(each.sent_bytes + each.disk_bytes for each in counts)

    @property
    def written(self) -> float:
        """Bytes that the service has written, per delivered record."""
        return self.written_bytes / max(1, self.deliveries.figures().delivered)

    async def _pile_up(self, producer: AIOKafkaProducer) -> None:
        """Send the backlog, and return when the service has read it."""
        plan = self.plan
        # Nothing of it arrives during the round.
        load = Load(plan.backlog, _AT_ONCE, *BACKLOG_DELAYS, plan.seed, Deliveries())
        await load.send(producer, plan.topics, plan.target)
        for instance in self.instances.values():
            await instance.until(lambda: self.read >= plan.backlog)
        await anyio.sleep(_MOVED)

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        """All instances, each of which has started. But for the killed one, they stop in good order."""
        async with AsyncExitStack() as stack:
            for name in "abcdefghij"[: self.plan.instances]:
                log = self._directory / f"{name}.log"
                self.instances[name] = await stack.enter_async_context(
                    Instance.running(self._arguments(name), log)
                )
            for name, instance in self.instances.items():
                await instance.line(f"{name} serves")
            if self.plan.is_replicated:
                for instance in self.instances.values():
                    await instance.until(lambda: self._owned() == _PARTITIONS)
            yield
            async with anyio.create_task_group() as stopping:
                for name, instance in self.instances.items():
                    stopping.start_soon(self._stop, name, instance)

    async def _stop(self, name: str, instance: Child) -> None:
        self._statuses[name] = await instance.stop()
        await instance.ended.wait()

    def _arguments(self, name: str) -> list[str]:
        plan = self.plan
        levels = ",".join(map(str, plan.all_levels))
        return [
            *("examples.delayed", "serve", "--design", plan.design, "--bootstrap", self._bootstrap),
            *("--directory", str(self._directory / name), "--instance", name),
            *("--topic", plan.topics.requests, "--session-timeout", str(plan.session_timeout)),
            *("--levels", levels, "--partitions", str(_PARTITIONS), "--statistics"),
        ]

    def _owned(self) -> int:
        return sum(instance.statistics.partitions for instance in self.instances.values())

    def _kill_leader(self) -> None:
        leader = max(self.instances, key=lambda name: self.instances[name].statistics.partitions)
        self.instances[leader].process.kill()
        self.killed = leader

    async def _all_arrived(self, arrivals: Arrivals) -> None:
        while not self.deliveries.is_complete:
            with anyio.move_on_after(_SILENCE) as silence:
                await arrivals.moved.wait()
            if silence.cancelled_caught:
                return

    def _faults(self) -> Iterator[str]:
        figures = self.deliveries.figures()
        if figures.scheduled < self.plan.messages:
            yield f"{self.plan.messages - figures.scheduled} records were not acknowledged"
        yield from self.deliveries.faults()
        for name, status in self._statuses.items():
            if status and name != self.killed:
                log = (self._directory / f"{name}.log").read_text()
                yield f"instance {name} ended with status {status}: {log[-300:]}"
