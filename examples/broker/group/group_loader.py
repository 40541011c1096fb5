"""The load of groups from their log, beside the requests of other groups."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from examples.broker.group.group import Group
from examples.broker.group.group_log import GroupLog, load

SLICE: Final = 250
"""The steps of a load between two turns of the event loop: some milliseconds."""


class GroupLoader:
    """Loads one partition after the other while ``run`` runs, and calls ``loaded`` with its groups.

    Kafka loads in a thread. Here a load stops after ``SLICE`` records, so that it delays no other request,
    nor another broker of the process, for longer.
    """

    def __init__(self, log: GroupLog, loaded: Callable[[int, dict[str, Group]], None]) -> None:
        self._log = log
        self._loaded = loaded
        self._waiting: dict[int, Iterator[None]] = {}
        self._begun = anyio.Event()

    def __repr__(self) -> str:
        return f"<GroupLoader of partitions {list(self._waiting)}>"

    def __contains__(self, partition: int) -> bool:
        return partition in self._waiting

    def __bool__(self) -> bool:
        """Whether a partition is not loaded yet."""
        return bool(self._waiting)

    def begin(self, partition: int) -> None:
        """Load a partition soon."""
        self._waiting[partition] = self._load(partition)
        self._begun.set()

    def stop(self, partition: int) -> None:
        """Do not go on with the load of a partition, if it is not loaded yet."""
        self._waiting.pop(partition, None)

    async def run(self) -> None:
        while True:
            await self._begun.wait()
            self._begun = anyio.Event()
            steps = self._load_all()
            while sum(1 for _ in islice(steps, SLICE)) == SLICE:
                await checkpoint()

    def _load_all(self) -> Iterator[None]:
        while self._waiting:
            partition, steps = next(iter(self._waiting.items()))
            for _ in steps:
                yield
                if self._waiting.get(partition) is not steps:
                    # It was stopped.
                    break

    def _load(self, partition: int) -> Iterator[None]:
        groups: dict[str, Group] = {}
        yield from load(self._log.read(partition), groups)
        del self._waiting[partition]
        self._loaded(partition, groups)
