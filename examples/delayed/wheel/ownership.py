"""From which partitions an instance forwards."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from math import inf
from typing import Any, Final

import anyio
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener  # type: ignore[import-untyped]  # has no types
from aiokafka.errors import CommitFailedError, IllegalStateError  # type: ignore[import-untyped]  # has no types
from anyio.abc import TaskGroup

from examples.delayed.clients import partitions_of

# The offsets that owners commit. Nobody reads from them.
RELEASED: Final = 0
HELD: Final = 1
# Milliseconds between two looks at the errors of the group.
_LOOK: Final = 1_000

logger = logging.getLogger("examples.delayed")


def _seconds_since_boot() -> float:
    """On Linux, they go on while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Ownership(ConsumerRebalanceListener):  # type: ignore[misc]  # has no types
    """A member of a consumer group. The group gives each partition to one member, which is its owner.

    The group takes a partition from a member that does not answer, and that member may not know. So an owner
    forwards only during a lease: for `lease` seconds after the group has accepted a commit of its generation.
    A new owner waits for the end of such a lease, unless the owner before it has released the partition.

    ``prepare(partition)`` runs before a partition is owned; ``changed(partition)`` is called when it is, or
    no longer is; ``drained(partition)`` waits until nothing of it is being forwarded.
    """

    def __init__(
        self,
        topic: str,
        prepare: Callable[[int], Awaitable[object]],
        changed: Callable[[int], object],
        drained: Callable[[int], Awaitable[object]],
        patience: float,
        lease: float,
        clock: Callable[[], float] = _seconds_since_boot,
    ) -> None:
        self.owned: set[int] = set()
        self._topic = topic
        self._prepare = prepare
        self._changed = changed
        self._drained = drained
        # Seconds that the group waits for `drained`, at most.
        self._patience = patience
        self._lease = lease
        self._clock = clock
        self._lease_end = -inf
        self._renewing = anyio.Lock(fast_acquire=True)
        # How often the group has changed. What was begun before a change has no effect after it.
        self._changes = 0
        self._tasks: TaskGroup | None = None

    async def run(self, consumer: AIOKafkaConsumer) -> None:
        """Take part in the group until it is cancelled. `consumer` is subscribed to nothing yet."""
        self._consumer = consumer
        try:
            async with anyio.create_task_group() as self._tasks:
                consumer.subscribe([self._topic], listener=self)
                while True:
                    # All partitions are paused. This raises the errors of the group.
                    await consumer.getmany(timeout_ms=_LOOK)
        finally:
            # The member gets assignments until it leaves the group.
            self._tasks = None

    async def confirm(self, partition: int) -> bool:
        """Whether this instance is the owner for certain, now. It asks the group when the lease is over."""
        while partition in self.owned:
            if self._clock() < self._lease_end:
                return True
            await self._renew()
        return False

    async def release(self) -> None:
        """Give up all partitions, when nothing of them is being forwarded. Others may have them at once."""
        owned = self._lose()
        with anyio.move_on_after(self._patience):
            for partition in owned:
                await self._drained(partition)
            await self._commit(dict.fromkeys(owned, RELEASED))

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        await self.release()

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._changes += 1
        self._consumer.pause(*assigned)
        if self._tasks is not None:
            for _, partition in assigned:
                # A task, because the group hears nothing of this member until the listener returns.
                self._tasks.start_soon(self._acquire, partition, self._changes)

    async def _acquire(self, partition: int, changes: int) -> None:
        """Become the owner, unless the group changes meanwhile."""
        (full,) = partitions_of(self._topic, [partition])
        if await self._consumer.committed(full) == HELD:
            await anyio.sleep(self._lease)
        await self._prepare(partition)
        if changes == self._changes:
            self.owned.add(partition)
            logger.info("partition %d is forwarded from here", partition)
            self._changed(partition)

    async def _renew(self) -> None:
        async with self._renewing:
            if self._clock() < self._lease_end:
                return
            changes, asked = self._changes, self._clock()
            accepted = await self._commit(dict.fromkeys(self.owned, HELD))
            if changes != self._changes:
                return
            if accepted:
                self._lease_end = asked + self._lease
            else:
                self._lose()

    async def _commit(self, offsets: dict[int, int]) -> bool:
        """Whether the group has accepted it, and so has not given the partitions to others before."""
        if not offsets:
            return True
        try:
            await self._consumer.commit(
                {full: offsets[full.partition] for full in partitions_of(self._topic, offsets)}
            )
        except (CommitFailedError, IllegalStateError) as error:
            logger.warning("the group has moved the partitions %s: %s", sorted(offsets), error)
            return False
        return True

    def _lose(self) -> set[int]:
        """Own nothing from now on."""
        self._changes += 1
        self._lease_end = -inf
        owned, self.owned = self.owned, set()
        for partition in owned:
            self._changed(partition)
        return owned
