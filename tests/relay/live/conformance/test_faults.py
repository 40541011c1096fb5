"""What a relay promises while its server is killed, frozen and started again."""

from __future__ import annotations

import pytest

from tests.relay.live.conformance.faulty_server import FaultyServer
from tests.relay.live.pairs import SHORT, hears, two_processes_on, until


@pytest.mark.long
async def test_a_write_while_the_server_is_dead_is_seen_when_it_is_back(
    single_server: FaultyServer,
) -> None:
    async with two_processes_on(single_server) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        single_server.kill()
        await until(lambda: not pair.waiter.relay.statistics().connected)
        pair.writer.write("tea")
        single_server.start()
        await waiting
        await hears(pair)


@pytest.mark.long
async def test_a_frozen_server_shows_within_a_heartbeat_and_is_heard_again(
    single_server: FaultyServer,
) -> None:
    async with two_processes_on(single_server, SHORT) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        with single_server.frozen():
            await until(lambda: not pair.waiter.relay.statistics().connected)
            pair.writer.write("tea")
        await waiting
        await hears(pair)


@pytest.mark.slow
async def test_a_cut_connection_loses_no_write(server: FaultyServer) -> None:
    async with two_processes_on(server) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        generation = pair.waiter.relay.statistics().generation
        assert await server.cut() >= 2
        pair.writer.write("tea")
        await waiting
        await until(lambda: pair.waiter.relay.statistics().generation > generation)
        await hears(pair)


@pytest.mark.long
async def test_a_write_is_seen_although_everything_is_swallowed(server: FaultyServer) -> None:
    async with server.hole() as hole, two_processes_on(hole, SHORT) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        generation = pair.waiter.relay.statistics().generation
        with hole.swallowing():
            pair.writer.write("tea")
            await waiting
        await until(lambda: pair.waiter.relay.statistics().generation > generation)
        await hears(pair)
