"""Wait for a quorum: a write is acknowledged when enough replicas have stored it.

    python -m examples.quorum

A coordinator sends each write to three replicas, one of which is slow. The write waits on a key of its own,
and every replica that has stored it checks that key. If the quorum is not reached before the timeout, the
outcome names the replicas that are missing: the last write here needs all three within 0.1 s.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from purgatory import DelayedOperation, Purgatory

REPLICAS = {"amsterdam": 0.010, "berlin": 0.020, "cairo": 0.200}
"""The seconds that each replica takes to store a write."""


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """Whether a write reached its quorum in time, and the replicas that had stored it by then."""

    acknowledged: bool
    stored_by: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "acknowledged" if self.acknowledged else "not acknowledged in time"
        missing = [replica for replica in REPLICAS if replica not in self.stored_by]
        return f"{verdict}; stored by {', '.join(self.stored_by)}; missing: {', '.join(missing) or 'none'}"


class DelayedWrite(DelayedOperation[WriteOutcome]):
    """Waits until `quorum` replicas have stored the write."""

    __slots__ = ("quorum", "stored_by")

    def __init__(self, stored_by: list[str], quorum: int, timeout: float) -> None:
        super().__init__(timeout)
        self.stored_by = stored_by
        self.quorum = quorum

    def try_complete(self) -> bool:
        return len(self.stored_by) >= self.quorum and self.force_complete()

    def on_complete(self) -> WriteOutcome:
        return WriteOutcome(not self.expired, tuple(self.stored_by))


class Coordinator:
    """Sends each write to every replica, and waits for as many of them as the caller asks for."""

    def __init__(self, purgatory: Purgatory, tasks: asyncio.TaskGroup) -> None:
        self._purgatory = purgatory
        self._tasks = tasks
        self._writes = 0
        self._stored_by: defaultdict[int, list[str]] = defaultdict(list)

    async def write(self, quorum: int, timeout: float) -> WriteOutcome:
        self._writes += 1
        write = self._writes
        for replica in REPLICAS:
            self._tasks.create_task(self._store(write, replica))
        operation = DelayedWrite(self._stored_by[write], quorum, timeout)
        return await self._purgatory.try_complete_else_watch(operation, [write])

    async def _store(self, write: int, replica: str) -> None:
        await asyncio.sleep(REPLICAS[replica])
        self._stored_by[write].append(replica)
        self._purgatory.check_and_complete(write)


async def main() -> None:
    async with Purgatory("writes") as purgatory, asyncio.TaskGroup() as tasks:
        coordinator = Coordinator(purgatory, tasks)
        for quorum in (1, 2, 3):
            outcome = await coordinator.write(quorum, timeout=0.1)
            print(f"quorum of {quorum}: {outcome}")


if __name__ == "__main__":
    asyncio.run(main())
