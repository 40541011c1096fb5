"""Two processes with relays over a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from purgatory.relay import Engine
from tests.relay.processes import Process, State

# Seconds. What anti-entropy would heal stays broken in these tests. A test of what only a heartbeat notices
# has a short one. The others leave a busy machine time to connect.
SHORT, LONG, NEVER = 1.8, 15.0, 3_600.0


class Maker(Protocol):
    """Makes engines: a server, or a proxy of one."""

    def engine(self) -> Engine: ...


class Served:
    """Makes engines in a way of its own."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine

    def engine(self) -> Engine:
        return self._engine()


def process_on(server: Maker, state: State, heartbeat: float = LONG) -> Process:
    return Process(
        server,  # type: ignore[arg-type]  # it takes whatever makes an engine
        state,
        heartbeat=heartbeat,
        anti_entropy=NEVER,
    )


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


async def signals_go_over(writer: Engine, waiter: Engine) -> None:
    """A signal of one engine arrives over another one."""
    engines = [waiter, writer]
    async with two_processes_on(Served(engines.pop)):
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
