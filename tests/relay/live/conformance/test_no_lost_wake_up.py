"""Rounds with faults from a seed. Every waiter sees every write, and none waits for anti-entropy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from random import Random

import anyio
import pytest

from purgatory.relay import Key
from tests.relay.live.black_hole import Hole
from tests.relay.live.conformance.faulty_server import FaultyServer, Overflowing
from tests.relay.live.pairs import SHORT, process_on
from tests.relay.processes import Maker, Process, State

pytestmark = pytest.mark.long

PROCESSES, KEYS, SECONDS = 3, 20, 3.0
# Seconds between writes, and for which a write may stay unseen after the last fault: a heartbeat until the
# fault is noticed, pauses between attempts to connect, and a busy machine.
PAUSE, LONGEST = 0.005, 10.0


async def kill(server: FaultyServer, random: Random) -> None:
    server.kill()
    await asyncio.sleep(random.uniform(0, 1))
    await asyncio.to_thread(server.start)


async def freeze(server: FaultyServer, random: Random) -> None:
    with server.frozen():
        await asyncio.sleep(random.uniform(0, 3 * SHORT))


async def cut(server: FaultyServer, random: Random) -> None:
    for _ in range(random.randint(1, 20)):
        await server.cut()
        await asyncio.sleep(random.uniform(0, 0.1))


async def overflow(server: Overflowing, random: Random) -> None:
    for _ in range(random.randint(1, 3)):
        server.overflow(random.randint(0, 10))


async def swallow(hole: Hole, random: Random) -> None:
    with hole.swallowing():
        await asyncio.sleep(random.uniform(0, 3 * SHORT))


class Oracle:
    """Knows when each write was made, and which of them a waiter has not seen yet."""

    def __init__(self) -> None:
        # Waiter -> the times of the writes that it has not seen, by version.
        self._unseen: dict[tuple[int, Key], dict[int, float]] = {}
        self.oldest = 0.0
        self.writes = 0
        self.empty = asyncio.Event()
        self.empty.set()

    def wrote(self, key: Key, version: int) -> None:
        self.writes += 1
        for process in range(PROCESSES):
            self._unseen.setdefault((process, key), {})[version] = asyncio.get_running_loop().time()
        self.empty.clear()

    def saw(self, process: int, key: Key, version: int) -> None:
        unseen = self._unseen.get((process, key), {})
        now = asyncio.get_running_loop().time()
        for each in [each for each in unseen if each <= version]:
            self.oldest = max(self.oldest, now - unseen.pop(each))
        if not any(self._unseen.values()):
            self.empty.set()


async def watch(process: Process, number: int, key: Key, oracle: Oracle) -> None:
    seen = 0
    while True:
        seen = await process.park(key, seen + 1)
        oracle.saw(number, key, seen)


async def write(processes: list[Process], state: State, oracle: Oracle, random: Random) -> None:
    while True:
        key = f"key {random.randrange(KEYS)}"
        random.choice(processes).write(key)
        oracle.wrote(key, state[key])
        await asyncio.sleep(random.expovariate(1 / PAUSE))


async def play(server: Maker, fault: Callable[[Random], Awaitable[None]], random: Random) -> None:
    """One round: watchers of all keys in all processes, writes in all of them, and faults meanwhile."""
    state, oracle = State(), Oracle()
    async with AsyncExitStack() as stack:
        made = [process_on(server, state, SHORT) for _ in range(PROCESSES)]
        processes = [await stack.enter_async_context(each) for each in made]
        async with anyio.create_task_group() as watching:
            for number, process in enumerate(processes):
                for key in range(KEYS):
                    watching.start_soon(watch, process, number, f"key {key}", oracle)
            async with anyio.create_task_group() as writing:
                writing.start_soon(write, processes, state, oracle, random)
                for _ in range(2):
                    await asyncio.sleep(random.uniform(0, SECONDS / 3))
                    await fault(random)
                await asyncio.sleep(random.uniform(0, SECONDS / 3))
                writing.cancel_scope.cancel()
            # No write comes that would wake a waiter by chance.
            with anyio.fail_after(LONGEST):
                await oracle.empty.wait()
            watching.cancel_scope.cancel()
    print(f"{oracle.writes} writes, the longest unseen for {oracle.oldest:.2f} s")


@pytest.mark.parametrize("seed", range(100))
async def test_no_write_stays_unseen(server: FaultyServer, seed: int) -> None:
    async with server.hole() as hole:
        rounds: list[tuple[Maker, Callable[[Random], Awaitable[None]]]] = [
            (server, partial(kill, server)),
            (server, partial(freeze, server)),
            (server, partial(cut, server)),
            (hole, partial(swallow, hole)),
        ]
        if isinstance(server, Overflowing):
            rounds.append((server, partial(overflow, server)))
        await play(*rounds[seed % len(rounds)], Random(seed))
