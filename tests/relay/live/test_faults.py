"""What a relay promises while its server is killed, frozen and started again."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
import redis

from tests.relay.live.black_hole import black_hole
from tests.relay.live.pairs import SHORT, hears, process_on, two_processes_on, until
from tests.relay.live.servers import TransportServer
from tests.relay.processes import State

# The other process runs on uvloop.
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
async def test_a_signal_arrives_in_another_process(server: TransportServer) -> None:
    transport = type(server.transport())
    script = SIGNAL.format(module=transport.__module__, transport=transport.__name__, url=server.url)
    async with two_processes_on(server) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        pair.state["tea"] += 1
        command = [sys.executable, "-c", script]
        process = await asyncio.to_thread(subprocess.run, command, check=False, timeout=60)
        assert process.returncode == 0
        await waiting


@pytest.mark.long
async def test_a_write_while_the_server_is_dead_is_seen_when_it_is_back(server: TransportServer) -> None:
    async with two_processes_on(server) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        server.kill()
        await until(lambda: not pair.waiter.relay.statistics().connected)
        pair.writer.write("tea")
        server.start()
        await waiting
        await hears(pair)


@pytest.mark.long
async def test_a_frozen_server_shows_within_a_heartbeat_and_is_heard_again(server: TransportServer) -> None:
    async with two_processes_on(server, SHORT) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        with server.frozen():
            await until(lambda: not pair.waiter.relay.statistics().connected)
            pair.writer.write("tea")
        await waiting
        await hears(pair)


@pytest.mark.slow
async def test_a_cut_connection_loses_no_write(server: TransportServer) -> None:
    async with two_processes_on(server) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        generation = pair.waiter.relay.statistics().generation
        assert await server.cut() >= 2
        pair.writer.write("tea")
        await waiting
        await until(lambda: pair.waiter.relay.statistics().generation > generation)
        await hears(pair)


@pytest.mark.long
async def test_a_write_is_seen_although_everything_is_swallowed(server: TransportServer) -> None:
    async with black_hole(server) as hole, two_processes_on(hole, SHORT) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        generation = pair.waiter.relay.statistics().generation
        with hole.swallowing():
            pair.writer.write("tea")
            await waiting
        await hears(pair)
        assert pair.waiter.relay.statistics().generation > generation


@pytest.mark.long
async def test_a_server_that_is_not_there_is_reported_when_the_relay_is_entered(
    server: TransportServer,
) -> None:
    server.kill()
    try:
        with pytest.raises((OSError, redis.ConnectionError)):
            async with process_on(server, State()):
                pass
    finally:
        server.start()
