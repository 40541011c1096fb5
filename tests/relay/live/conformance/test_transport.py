"""What a relay needs of each transport."""

from __future__ import annotations

import asyncio

import anyio
import pytest
import redis

from purgatory.relay import Publication, Transport
from tests.relay.live.conformance.faulty_server import FaultyServer
from tests.relay.transports.heard import running

pytestmark = pytest.mark.slow

AWAY = OSError, redis.ConnectionError
CHANNELS = [f"{number:02x}" for number in range(256)]


async def hears(transport: Transport) -> None:
    """Return when the transport has heard what it has published."""
    async with running(transport) as heard:
        await transport.subscribe(["00"])
        await transport.publish([Publication("00", "hears")])
        await heard.all_of("hears")


# What arrives


async def test_a_text_arrives_over_another_transport_and_over_its_own(server: FaultyServer) -> None:
    one, other = server.transport(), server.transport()
    async with running(one) as heard_by_one, running(other) as heard_by_other:
        await one.subscribe(["00"])
        await other.subscribe(["00", "0123456789abcdef"])
        await one.publish([Publication("00", "tea")])
        await heard_by_one.all_of("tea")
        await heard_by_other.all_of("tea")
    for transport in (one, other):
        await transport.aclose()


async def test_all_that_is_published_after_the_confirmation_arrives(server: FaultyServer) -> None:
    one, other = server.transport(), server.transport()
    async with running(one), running(other) as heard:
        for channel in CHANNELS[::16]:
            await other.subscribe([channel])
            await one.publish([Publication(channel, channel)])
        await heard.all_of(*CHANNELS[::16])
    await one.aclose()


async def test_hundreds_of_publications_arrive_each(server: FaultyServer) -> None:
    one, other = server.transport(), server.transport()
    publications = [Publication(channel, f"{channel}{more}") for channel in CHANNELS for more in "abc"]
    async with running(one), running(other) as heard:
        await other.subscribe(CHANNELS)
        await one.publish(publications)
        await heard.all_of(*[text for _, text in publications])
    await one.aclose()


async def test_the_longest_text_arrives_whole(server: FaultyServer) -> None:
    transport = server.transport()
    async with running(transport) as heard:
        assert transport.max_bytes >= 200
        text = "x" * transport.max_bytes
        await transport.subscribe(["00"])
        await transport.publish([Publication("00", text)])
        await heard.all_of(text)
    await transport.aclose()


async def test_a_channel_can_be_subscribed_twice_and_again(server: FaultyServer) -> None:
    transport = server.transport()
    async with running(transport) as heard:
        await transport.subscribe(["00", "01"])
        await transport.subscribe(["00"])
        await transport.unsubscribe(["00", "01"])
        await transport.subscribe(["00"])
        await transport.publish([Publication("00", "tea")])
        await heard.all_of("tea")
    await transport.aclose()


# The connection


async def test_nothing_is_subscribed_without_a_connection(server: FaultyServer) -> None:
    transport = server.transport()
    assert repr(transport).endswith("not connected>")
    for call in (transport.subscribe, transport.unsubscribe):
        with pytest.raises(ConnectionError, match="no connection"):
            await call(["00"])


async def test_it_says_whether_it_is_connected(server: FaultyServer) -> None:
    transport = server.transport()
    async with running(transport):
        assert repr(transport).endswith(" connected>")
        assert "not connected" not in repr(transport)
    assert repr(transport).endswith("not connected>")


async def test_a_cancelled_transport_leaves_no_connection(server: FaultyServer) -> None:
    transport = server.transport()
    async with running(transport):
        await transport.subscribe(["00"])
        await transport.publish([Publication("00", "tea")])
    await transport.aclose()
    while await server.cut():  # noqa: ASYNC110  # it is the server that notices
        await asyncio.sleep(0.005)


async def test_a_connection_that_the_server_ends_ends_the_run_and_the_next_run_hears(
    server: FaultyServer,
) -> None:
    transport = server.transport()
    with pytest.RaisesGroup(pytest.RaisesExc((ConnectionError, redis.ConnectionError))):
        async with running(transport):
            # Redis knows by its subscriptions which connection is to be cut.
            await transport.subscribe(["00"])
            # The end of the run cancels this block, and must not interrupt the cut.
            cutting = asyncio.create_task(server.cut())
            await asyncio.Event().wait()
    assert await cutting
    assert repr(transport).endswith("not connected>")
    await hears(transport)
    await transport.aclose()


@pytest.mark.long
async def test_a_server_that_is_not_there_is_reported_before_it_is_connected(
    single_server: FaultyServer,
) -> None:
    transport = single_server.transport()
    await hears(transport)
    single_server.kill()
    try:
        with pytest.RaisesGroup(pytest.RaisesExc(AWAY)):
            async with running(transport):
                raise AssertionError("it must not be started")
        with pytest.raises(AWAY):
            await transport.publish([Publication("00", "tea")])
    finally:
        single_server.start()
    await hears(transport)
    await transport.aclose()


async def test_every_call_can_be_cancelled_while_nothing_answers(server: FaultyServer) -> None:
    transport = server.transport()
    async with running(transport):
        await transport.publish([Publication("00", "tea")])
        with server.frozen():
            for call in (
                transport.publish([Publication("00", "tea")]),
                transport.subscribe(["00"]),
                transport.unsubscribe(["00"]),
            ):
                with anyio.move_on_after(0.1):
                    await call
    with server.frozen(), anyio.move_on_after(0.1):
        async with running(transport):
            pass
    await hears(transport)
    await transport.aclose()
