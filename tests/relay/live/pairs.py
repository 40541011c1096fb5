"""Two processes with relays over a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from purgatory.relay import Transport
from tests.relay.processes import Maker, Process, State

# Seconds. What anti-entropy would heal stays broken in these tests. A test of what only a heartbeat notices
# has a short one. The others leave a busy machine time to connect.
SHORT, LONG, NEVER = 1.8, 15.0, 3_600.0


class Served:
    """Makes transports in a way of its own."""

    def __init__(self, transport: Callable[[], Transport]) -> None:
        self._transport = transport

    def transport(self) -> Transport:
        return self._transport()


def process_on(server: Maker, state: State, heartbeat: float = LONG) -> Process:
    return Process(server, state, heartbeat=heartbeat, anti_entropy=NEVER)


class Pair(NamedTuple):
    """Two processes, one of which writes while the other waits."""

    writer: Process
    waiter: Process

    @property
    def state(self) -> State:
        return self.writer.state


@asynccontextmanager
async def two_processes_on(server: Maker, heartbeat: float = LONG) -> AsyncIterator[Pair]:
    """Two processes. The second one hears the signals of the first one."""
    state = State()
    async with process_on(server, state, heartbeat) as writer, process_on(server, state, heartbeat) as waiter:
        pair = Pair(writer, waiter)
        await hears(pair)
        yield pair


async def signals_go_over(writer: Transport, waiter: Transport) -> None:
    """A signal of one transport arrives over another one."""
    transports = [waiter, writer]
    async with two_processes_on(Served(transports.pop)):
        pass


async def hears(pair: Pair) -> None:
    """Return when a signal for tea has arrived. A write alone may be seen for another reason."""
    heard = pair.waiter.relay.statistics().arrived
    while pair.waiter.relay.statistics().arrived == heard:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        pair.writer.write("tea")
        await waiting


async def until(condition: Callable[[], object]) -> None:
    """Wait for what another process does. pytest's timeout ends it if that does not happen."""
    while not condition():  # noqa: ASYNC110  # it sets no event here
        await asyncio.sleep(0.005)
