"""The power goes off while messages are scheduled, cancelled and delivered, again and again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import pytest
from hypothesis import settings

from purgatory import PurgatoryClosed
from purgatory.delayed import DelayedMessages, Receipt, StoreFailed
from tests.delayed.service import PATH, Delivered, Service
from tests.delayed.storage.simulated_disk import PowerCut, Survival

WRITERS = 5
RUNS = max(5, settings().max_examples // 5)


class Promises:
    """What the calls have answered. A message is known by its payload."""

    def __init__(self, service: Service, random: Random) -> None:
        self.service = service
        self.random = random
        self.stored: dict[bytes, Receipt] = {}
        self.cancelled: set[bytes] = set()
        self.in_doubt: set[bytes] = set()
        self.broken: list[Delivered] = []
        service.handle = self.check

    async def check(self, attempt: Delivered) -> None:
        if attempt.late < 0 or attempt.payload in self.cancelled:
            # An exception would be a failed delivery, and the message would come again.
            self.broken.append(attempt)
        await asyncio.sleep(self.random.random() / 10)
        if self.random.random() < 0.1:
            raise ValueError

    async def write(self, delayed: DelayedMessages, writer: str) -> None:
        random, number = self.random, 0
        while True:
            await asyncio.sleep(random.expovariate(2))
            number += 1
            payload = f"{writer}.{number}".encode()
            due = self.service.wall() + random.choice([0, 0.3, 5, 15, 25, 40])
            with suppress(OSError):
                receipt = await delayed.schedule(payload, at=due, id=random.choice([None, payload.decode()]))
                self.stored[payload] = receipt
            waiting = sorted(self.stored.keys() - self.cancelled - self.in_doubt)
            if waiting and random.random() < 0.3:
                await self.cancel(delayed, random.choice(waiting))

    async def cancel(self, delayed: DelayedMessages, payload: bytes) -> None:
        self.in_doubt.add(payload)
        try:
            if await delayed.cancel(self.stored[payload]):
                self.cancelled.add(payload)
        except OSError:
            pass
        self.in_doubt.discard(payload)

    @property
    def missing(self) -> set[bytes]:
        return self.stored.keys() - self.cancelled - self.in_doubt - set(self.service.payloads)


async def serve(promises: Promises, run: str, seconds: float) -> None:
    """Until the power goes off, or for some seconds."""
    async with promises.service.store(backoff=0.5, attempts=1_000) as delayed:
        writers = [asyncio.create_task(promises.write(delayed, f"{run}.{n}")) for n in range(WRITERS)]
        try:
            await asyncio.wait(writers, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for writer in writers:
                writer.cancel()
            await asyncio.wait(writers)
        for writer in writers:
            if not writer.cancelled() and (error := writer.exception()):
                assert isinstance(error, StoreFailed | PurgatoryClosed | PowerCut)


@pytest.mark.parametrize("seed", range(RUNS))
async def test_whatever_was_promised_is_kept_through_crashes_and_full_disks(
    service: Service, seed: int
) -> None:
    random = Random(seed)
    promises = Promises(service, random)
    crashes = 0
    for run in range(6):
        disk = service.disk
        disk.cut_power_at = random.randint(1, 400)
        if random.random() < 0.3:
            disk.capacity = disk.used + random.randint(0, 3_000)
        # Whichever thread meets them, the promises hold.
        if random.random() < 0.2:
            disk.fail(random.choice(["sync", "sync_directory"]), path=PATH, after=random.randint(0, 100))
        if random.random() < 0.3:
            disk.fail(random.choice(["read", "remove", "open"]), path=PATH, after=random.randint(0, 100))
        try:
            await serve(promises, str(run), random.uniform(5, 60))
        except (PowerCut, StoreFailed, OSError):
            pass
        except BaseExceptionGroup as errors:
            # Two threads of the store may use the disk when the power goes off.
            _, others = errors.split(PowerCut)
            if others is not None:
                raise
        crashes += disk.off
        service.disk = disk.after_power_cut(Survival(random))
    async with service.store(backoff=0.5, attempts=1_000):
        await asyncio.sleep(60)
    assert not promises.missing
    assert not promises.broken
    assert service.files("slots") == []
    assert service.files("wal") == []
    assert crashes > 0
    assert len(promises.stored) > 20
