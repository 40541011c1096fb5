"""What only NATS has: a client that drops, a limit of the server, and a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partialmethod
from typing import NamedTuple

import anyio
import nats
import pytest
from nats.aio.client import Client

from purgatory.relay import Publication, signal_text
from purgatory.relay.keys import encoded, shard_of
from purgatory.relay.transports.nats import NatsTransport
from tests.free_ports import free_ports
from tests.relay.live.black_hole import BlackHole, black_hole
from tests.relay.live.nats_servers import NatsCluster, NatsServer
from tests.relay.live.pairs import Pair, Served, hears, process_on, signals_go_over, two_processes_on, until
from tests.relay.processes import State
from tests.relay.transports.heard import running

pytestmark = pytest.mark.slow


# One server


async def test_another_program_signals_on_the_subject_of_the_shard(nats_server: NatsServer) -> None:
    # The documentation has this example.
    assert f"{shard_of(encoded(('job', 3))):02x}" == "6f"
    state = State()
    served = Served(lambda: NatsTransport(nats_server.url, prefix="app"))
    async with process_on(served, state) as waiter, await nats.connect(nats_server.url) as client:
        waiting = waiter.park(("job", 3))
        await until(lambda: waiter.relay.statistics().waiting == 0)
        state["job", 3] += 1
        # It may be subscribed a moment later.
        while not waiter.relay.statistics().arrived:
            await client.publish("app.6f", signal_text([("job", 3)]).encode())
            await asyncio.sleep(0.005)
        await waiting


async def test_a_publication_that_is_no_text_is_handed_over_as_no_json(nats_server: NatsServer) -> None:
    transport = nats_server.transport()
    async with running(transport) as heard, await nats.connect(nats_server.url) as client:
        await transport.subscribe(["00"])
        await client.publish("purgatory.00", b'{"keys":["\xff"]}')
        await heard.all_of('{"keys":["\\xff"]}')


async def test_what_the_client_drops_is_a_gap(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "subscribe", partialmethod(Client.subscribe, pending_msgs_limit=10))
    transport = nats_server.transport()
    async with running(transport) as heard:
        await transport.subscribe(["00"])
        # They come in one piece, before the task of the subscription runs.
        await transport.publish([Publication("00", str(number)) for number in range(1_000)])
        assert heard.gaps > 0
        assert len(heard.texts) < 1_000


async def test_a_server_that_takes_less_gets_shorter_texts() -> None:
    with NatsServer(max_payload=1_000) as server:
        async with two_processes_on(server) as pair:
            assert pair.writer.transport.max_bytes == 1_000
            waiting = pair.waiter.park("tea")
            for number in range(100):
                pair.writer.relay.signal(f"key {number} {'x' * 100}")
            pair.writer.write("tea")
            await waiting
            await pair.writer.relay.signalled("tea")
            assert pair.writer.relay.statistics().publish_failures == 0


async def test_a_connection_is_closed_although_much_is_to_be_sent_to_a_server_that_stands_still(
    nats_server: NatsServer,
) -> None:
    transport = nats_server.transport()
    much = [Publication("00", "x" * 30_000)] * 1_000
    async with running(transport):
        with nats_server.frozen(), anyio.move_on_after(0.2):
            await transport.publish(much)
        with nats_server.frozen():
            async with anyio.create_task_group() as group:
                group.start_soon(transport.publish, much)
                await asyncio.sleep(0.2)
                group.cancel_scope.cancel()


# A cluster


class Two(NamedTuple):
    """Two servers of a cluster. All that goes from one to the other passes a proxy."""

    first: NatsServer
    second: NatsServer
    route: BlackHole


@asynccontextmanager
async def two_servers() -> AsyncIterator[Two]:
    port = free_ports(1)
    with NatsServer(cluster={"name": "app", "listen": f"127.0.0.1:{port}"}) as first:
        async with black_hole(port, first.transport) as route:
            settings = {
                "name": "app",
                "listen": f"127.0.0.1:{free_ports(1)}",
                "routes": [f"nats://127.0.0.1:{route.port}"],
            }
            # It finds the proxy while this loop runs.
            second = NatsServer(cluster=settings)
            await asyncio.to_thread(second.start)
            with ExitStack() as stack:
                stack.push(second)
                await signals_go_over(first.transport(), second.transport())
                yield Two(first, second, route)


async def test_all_servers_know_of_a_subscription_when_it_is_confirmed() -> None:
    async with two_servers() as (first, second, route):
        waiter, writer = first.transport(), second.transport()
        route.delay = 0.05
        time = asyncio.get_running_loop().time
        published: list[str] = []
        async with running(waiter) as heard, running(writer):
            while len(published) < 4:
                channel = f"{len(heard.texts) + 1:02}"
                began = time()
                await waiter.subscribe([channel])
                # While the loop stands still, the proxy does, too, and the time of the confirmation goes on.
                if time() - began < 0.35:
                    await writer.publish([Publication(channel, channel)])
                    published.append(channel)
                    await heard.all_of(*published)
                else:
                    await waiter.unsubscribe([channel])


async def test_a_server_that_comes_or_goes_is_a_gap_for_the_clients_of_the_others() -> None:
    async with two_servers() as (first, second, _), running(first.transport()) as heard:
        for change in (second.kill, second.start):
            gaps = heard.gaps
            await asyncio.to_thread(change)
            while heard.gaps == gaps:
                await heard.change()


async def test_a_signal_that_is_lost_between_two_servers_is_made_up_for_when_one_of_them_goes() -> None:
    async with two_servers() as (first, second, route):
        state = State()
        async with process_on(first, state) as waiter, process_on(second, state) as writer:
            await hears(Pair(writer, waiter))
            waiting = waiter.park("tea", state["tea"] + 1)
            with route.swallowing():
                state["tea"] += 1
                await writer.relay.signalled("tea")
                await asyncio.to_thread(second.kill)
                await waiting


async def test_what_a_server_that_stood_still_has_taken_is_published_again(nats_cluster: NatsCluster) -> None:
    transport = nats_cluster.servers[0].transport()
    async with running(transport) as heard:
        await transport.subscribe(["00"])
        with nats_cluster.servers[0].frozen():
            publishing = asyncio.create_task(transport.publish([Publication("00", "tea")]))
            # For longer than other servers need in order to hear of a subscription.
            await asyncio.sleep(0.5)
        await publishing
        while heard.texts != ["tea", "tea"]:
            await heard.change()


@pytest.mark.parametrize(
    ("writers", "waiters"),
    [(0, 0), (0, 1), (1, 0)],
    ids=["both lose their server", "the writer loses its server", "the waiter loses its server"],
)
async def test_a_write_during_a_failover_is_seen_and_the_others_carry_signals(
    writers: int, waiters: int
) -> None:
    with NatsCluster() as cluster:
        transports = [cluster.transport_beginning_with(number) for number in (waiters, writers)]
        async with two_processes_on(Served(transports.pop)) as pair:
            waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
            pair.writer.write("tea")
            cluster.servers[0].kill()
            await waiting
            waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
            pair.writer.write("tea")
            await waiting
            await hears(pair)
