"""A signal of another process, whose loop is uvloop's."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.relay.live.pairs import two_processes_on
from tests.relay.live.servers import TransportServer

SIGNAL = """
import uvloop
from purgatory import Purgatory
from purgatory.relay import Relay
from {module} import {transport}

async def main():
    async with Purgatory() as polls, Relay(polls, {transport}({url!r})) as relay:
        await relay.signalled("tea")

uvloop.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["redis_server", "postgres_server", "nats_server"])
async def test_a_signal_arrives_in_another_process(name: str, request: pytest.FixtureRequest) -> None:
    server: TransportServer = request.getfixturevalue(name)
    transport = type(server.transport())
    script = SIGNAL.format(module=transport.__module__, transport=transport.__name__, url=server.url)
    async with two_processes_on(server) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        pair.state["tea"] += 1
        command = [sys.executable, "-c", script]
        process = await asyncio.to_thread(subprocess.run, command, check=False, timeout=60)
        assert process.returncode == 0
        await waiting
