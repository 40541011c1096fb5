"""A quorum wait: a write is acknowledged when enough replicas have it, or reports who is missing.

    python -m examples.quorum

Three replicas store what the coordinator sends them, one of them slowly. A write parks one operation on a key
of its own, and every acknowledgement checks that key. The last write needs all three replicas, within less
time than the slow one takes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import anyio
import anyio.abc

from examples.event_loop import run
from purgatory import DelayedOperation, Purgatory

REPLICAS = {"amsterdam": 0.010, "berlin": 0.020, "cairo": 0.200}
"""Seconds that each takes to store a write."""


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """Who had stored the write when the wait for it ended."""

    acknowledged: bool
    stored_by: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "acknowledged" if self.acknowledged else "not acknowledged in time"
        missing = [replica for replica in REPLICAS if replica not in self.stored_by]
        return f"{verdict}: stored by {', '.join(self.stored_by)}; missing {', '.join(missing) or 'none'}"


class QuorumWrite(DelayedOperation[WriteOutcome]):
    """Waits until `quorum` replicas have stored the write."""

    def __init__(self, stored_by: list[str], quorum: int, timeout: float) -> None:
        super().__init__(timeout)
        self.stored_by = stored_by
        self.quorum = quorum

    def try_complete(self) -> bool:
        return len(self.stored_by) >= self.quorum and self.force_complete()

    def on_complete(self) -> WriteOutcome:
        return WriteOutcome(not self.expired, tuple(self.stored_by))


class Coordinator:
    """Sends each write to every replica, and waits for as many as the caller asks for."""

    def __init__(self, purgatory: Purgatory, task_group: anyio.abc.TaskGroup) -> None:
        self._purgatory = purgatory
        self._task_group = task_group
        self._stored_by: defaultdict[int, list[str]] = defaultdict(list)
        self._writes = 0

    async def write(self, quorum: int, timeout: float) -> WriteOutcome:
        self._writes += 1
        number = self._writes
        for replica, seconds in REPLICAS.items():
            self._task_group.start_soon(self._store, replica, seconds, number)
        operation = QuorumWrite(self._stored_by[number], quorum, timeout)
        return await self._purgatory.try_complete_else_watch(operation, [number])

    async def _store(self, replica: str, seconds: float, number: int) -> None:
        await anyio.sleep(seconds)
        self._stored_by[number].append(replica)
        self._purgatory.check_and_complete(number)


async def main() -> list[WriteOutcome]:
    outcomes = []
    async with Purgatory("writes") as purgatory, anyio.create_task_group() as task_group:
        coordinator = Coordinator(purgatory, task_group)
        for quorum, timeout in [(1, 0.1), (2, 0.1), (3, 0.1)]:
            outcome = await coordinator.write(quorum, timeout)
            print(f"{quorum} of {len(REPLICAS)} within {timeout} s: {outcome}")
            outcomes.append(outcome)
    return outcomes


if __name__ == "__main__":
    run(main)
