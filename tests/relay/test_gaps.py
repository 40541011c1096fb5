"""Signals that were lost: who waits is woken as soon as the loss is detected and repaired."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence

import pytest
import pytest_asyncio

from purgatory.relay import Key, Publication
from purgatory.relay.texts import read
from purgatory.testing import InProcessBroker, VirtualTimeLoop
from tests.relay.processes import Pair, Process, State, Version, two_processes

pytestmark = pytest.mark.usefixtures("virtual_time")

HEARTBEAT = 9.0
ANTI_ENTROPY = 1_000.0


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[Pair]:
    async with two_processes(heartbeat=HEARTBEAT, anti_entropy=ANTI_ENTROPY) as pair:
        yield pair


@pytest_asyncio.fixture
async def waiting(pair: Pair) -> Version:
    operation = pair.waiter.park("tea")
    await asyncio.sleep(1)
    return operation


async def seconds_until(done: Awaitable[object]) -> float:
    start = asyncio.get_running_loop().time()
    # Heartbeats would let virtual time pass for ever.
    async with asyncio.timeout(5_000):
        await done
    return asyncio.get_running_loop().time() - start


async def test_a_signal_that_is_lost_with_the_connection_is_made_up_for_at_once(
    pair: Pair, waiting: Version, caplog: pytest.LogCaptureFixture
) -> None:
    pair.writer.write("tea")
    # It has reached the server, and is on its way back.
    await asyncio.sleep(0.15)
    pair.broker.cut()
    assert await seconds_until(waiting) == 0
    assert "the connection is lost, next attempt in" in caplog.text
    await asyncio.sleep(1)
    assert pair.waiter.relay.statistics().arrived == 0


async def test_a_signal_that_comes_while_nobody_listens_is_made_up_for_at_the_confirmation(
    pair: Pair, waiting: Version
) -> None:
    pair.broker.cut()
    # After the refresh at the loss, and before the next connection.
    await asyncio.sleep(0.01)
    pair.writer.write("tea")
    # The first attempt after at most 0.05 s, and two round trips.
    assert await seconds_until(waiting) <= 0.05 + 4 * 0.1
    statistics = pair.waiter.relay.statistics()
    assert (statistics.generation, statistics.gaps) == (2, 1)


async def test_a_connection_that_is_cut_again_and_again_loses_nothing(pair: Pair) -> None:
    async def cut() -> None:
        while True:
            await asyncio.sleep(1.3)
            pair.broker.cut()

    cutting = asyncio.create_task(cut())
    for version in range(1, 200):
        operation = pair.waiter.park("tea", version)
        pair.writer.write("tea")
        assert await seconds_until(operation) <= 1
    cutting.cancel()


async def test_a_server_that_stops_is_connected_again_when_it_starts(
    pair: Pair, waiting: Version, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    pair.broker.stop()
    pair.writer.write("tea")
    await asyncio.sleep(100)
    # The refresh at the loss has seen it, though no signal went out.
    assert waiting.done
    operation = pair.waiter.park("tea", 2)
    await asyncio.sleep(1)
    pair.writer.write("tea")
    await asyncio.sleep(100)
    assert not operation.done
    assert not pair.waiter.relay.statistics().connected
    assert repr(pair.waiter.relay) == "<Relay of 'polls' not connected>"
    assert pair.writer.relay.statistics().publish_failures > 10
    pair.broker.start()
    assert await seconds_until(operation) <= 5 + 1
    assert pair.waiter.relay.statistics().gaps == 1
    # Two processes try for 200 s, and their pauses grow to between 2.5 and 5 s.
    assert 2 * 40 <= caplog.text.count("still not connected") <= 2 * 90


async def test_signals_that_could_not_be_published_go_out_when_the_server_is_back(pair: Pair) -> None:
    published: list[Key] = []
    publish = pair.writer.transport.publish

    async def note(publications: Sequence[Publication]) -> None:
        await publish(publications)
        published.extend(key for publication in publications for key in read(publication.text).keys)

    pair.writer.transport.publish = note  # type: ignore[method-assign]
    pair.broker.stop()
    taken = asyncio.create_task(pair.writer.relay.signalled("tea"))
    await asyncio.sleep(60)
    pair.writer.relay.signal("coffee")
    assert not taken.done()
    pair.broker.start()
    # The pause before an attempt is at most 5 s.
    assert await seconds_until(taken) <= 5 + 1
    await asyncio.sleep(1)
    assert published == ["tea", "coffee"]
    assert pair.writer.relay.statistics().publish_failures > 1


async def test_signals_that_wait_go_out_as_soon_as_the_connection_is_back(pair: Pair) -> None:
    # Often enough for chance: the pause before an attempt to publish may end just then.
    for _ in range(20):
        pair.broker.stop()
        taken = asyncio.create_task(pair.writer.relay.signalled("tea"))
        await asyncio.sleep(60)
        pair.broker.start()
        while not pair.writer.relay.statistics().connected:  # noqa: ASYNC110  # it sets no event
            await asyncio.sleep(0.01)
        assert await seconds_until(taken) <= 2 * 0.1 + 0.01


async def test_a_connection_that_looks_open_is_given_up_within_a_heartbeat(
    pair: Pair, waiting: Version
) -> None:
    await asyncio.sleep(20)
    pair.broker.silence()
    pair.writer.write("tea")
    assert await seconds_until(waiting) <= HEARTBEAT + 0.1
    await asyncio.sleep(1)
    statistics = pair.waiter.relay.statistics()
    assert (statistics.connected, statistics.generation, statistics.gaps) == (True, 2, 1)


async def test_a_worker_that_hears_nothing_shows_it_within_a_heartbeat(
    pair: Pair, virtual_time: VirtualTimeLoop
) -> None:
    await asyncio.sleep(20)
    assert pair.waiter.relay.statistics().connected
    pair.broker.freeze()
    await asyncio.sleep(HEARTBEAT)
    statistics = pair.waiter.relay.statistics()
    assert not statistics.connected
    assert statistics.heartbeat_age is not None
    assert statistics.heartbeat_age >= HEARTBEAT
    await asyncio.sleep(100)
    assert not pair.waiter.relay.statistics().connected
    pair.broker.start()
    await asyncio.sleep(6)
    assert pair.waiter.relay.statistics().connected


async def test_a_connection_that_brings_no_heartbeat_back_never_counts_as_connected(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    class MayNotPublish(OSError):
        def __repr__(self) -> str:
            return "network:MayNotPublish"

    async def refuse(publications: Sequence[Publication]) -> None:
        raise MayNotPublish("no permission")

    publish = pair.waiter.transport.publish
    pair.waiter.transport.publish = refuse  # type: ignore[method-assign]
    await asyncio.sleep(HEARTBEAT)
    relay = pair.waiter.relay
    for _ in range(300):
        assert not relay.statistics().connected
        await asyncio.sleep(0.1)
    assert relay.statistics().generation > 2
    assert "MayNotPublish: no permission" in caplog.text
    assert "TimeoutError: within 6 seconds no heartbeat has come back" in caplog.text
    pair.waiter.transport.publish = publish  # type: ignore[method-assign]
    await asyncio.sleep(6)
    assert relay.statistics().connected


async def test_a_worker_whose_loop_stands_still_shows_it_within_a_heartbeat(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.sleep(20)
    # Another thread reads the figures. No task has run meanwhile.
    later = asyncio.get_running_loop().time() + HEARTBEAT
    monkeypatch.setattr(pair.waiter.relay._link, "_clock", lambda: later)
    assert not pair.waiter.relay.statistics().connected


async def test_connections_that_are_lost_before_a_heartbeat_is_back_become_rare(pair: Pair) -> None:
    """A server may end each connection for what is subscribed on it (max_subscriptions of NATS)."""
    subscribe = pair.waiter.transport.subscribe

    async def subscribe_and_lose(channels: Sequence[str]) -> None:
        await subscribe(channels)
        pair.broker.cut()

    pair.waiter.transport.subscribe = subscribe_and_lose  # type: ignore[method-assign]
    pair.waiter.park("tea")
    await asyncio.sleep(60)
    assert 10 < pair.waiter.relay.statistics().generation < 30


async def test_a_subscription_on_a_dead_connection_does_not_wait_for_ever(pair: Pair) -> None:
    await asyncio.sleep(20)
    pair.broker.silence()
    operation = pair.waiter.park("tea")
    await asyncio.sleep(1)
    pair.writer.write("tea")
    assert await seconds_until(operation) <= HEARTBEAT + 1


async def test_a_subscription_that_the_server_refuses_ends_the_connection(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    # That one ends for another reason.
    pair.broker.cut()
    await asyncio.sleep(1)
    subscribe = pair.waiter.transport.subscribe
    pair.waiter.transport.subscribe = refused  # type: ignore[method-assign]
    operation = pair.waiter.park("tea")
    await asyncio.sleep(10)
    assert pair.waiter.relay.statistics().gaps == 2
    assert "OSError: no permission" in caplog.text
    pair.waiter.transport.subscribe = subscribe  # type: ignore[method-assign]
    await asyncio.sleep(6)
    pair.writer.write("tea")
    assert await seconds_until(operation) <= 1


async def test_a_subscription_that_the_server_ignores_ends_the_connection(pair: Pair) -> None:
    subscribe = pair.waiter.transport.subscribe
    pair.waiter.transport.subscribe = ignored  # type: ignore[method-assign]
    operation = pair.waiter.park("tea")
    await asyncio.sleep(HEARTBEAT)
    pair.waiter.transport.subscribe = subscribe  # type: ignore[method-assign]
    await asyncio.sleep(1)
    assert pair.waiter.relay.statistics().gaps == 1
    pair.writer.write("tea")
    assert await seconds_until(operation) <= 1


async def refused(channels: Sequence[str]) -> None:
    raise OSError("no permission")


async def ignored(channels: Sequence[str]) -> None:
    await asyncio.get_running_loop().create_future()


async def test_a_transport_that_returns_has_lost_its_connection(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    third = Process(pair.broker, pair.state)
    run = third.transport.run

    async def run_and_return(*arguments: object, **options: object) -> None:
        with pytest.raises(ConnectionResetError):
            await run(*arguments, **options)  # type: ignore[arg-type]

    third.transport.run = run_and_return  # type: ignore[method-assign]
    async with third:
        pair.broker.cut()
        await asyncio.sleep(1)
        assert third.relay.statistics().generation == 2
    assert "Transport.run has returned" in caplog.text


async def test_a_queue_that_overflows_is_a_gap(pair: Pair, waiting: Version) -> None:
    pair.state["tea"] += 1
    pair.broker.overflow()
    assert await seconds_until(waiting) == 0
    statistics = pair.waiter.relay.statistics()
    assert (statistics.generation, statistics.gaps) == (1, 1)


async def test_a_message_that_vanishes_is_made_up_for_within_the_anti_entropy_interval(
    pair: Pair, waiting: Version
) -> None:
    pair.broker.losing = True
    pair.writer.write("tea")
    await asyncio.sleep(1)
    pair.broker.losing = False
    assert HEARTBEAT < await seconds_until(waiting) <= ANTI_ENTROPY


async def test_a_server_that_is_frozen_and_goes_on_delivers_late(pair: Pair, waiting: Version) -> None:
    pair.broker.freeze()
    pair.writer.write("tea")
    await asyncio.sleep(3)
    assert not waiting.done
    pair.broker.start()
    assert await seconds_until(waiting) == pytest.approx(0.1)


async def test_a_publish_that_the_server_never_answers_is_tried_again(
    pair: Pair, waiting: Version, caplog: pytest.LogCaptureFixture
) -> None:
    pair.broker.freeze()
    taken = asyncio.create_task(pair.writer.relay.signalled("tea"))
    await asyncio.sleep(60)
    assert not taken.done()
    assert pair.writer.relay.statistics().publish_failures > 1
    assert "publishing has taken more than 9 seconds" in caplog.text
    pair.broker.start()
    assert await seconds_until(taken) <= 5 + 1


async def test_the_broker_describes_itself() -> None:
    broker = InProcessBroker()
    async with Process(broker, State()) as process:
        assert repr(broker) == "<InProcessBroker running connections=1>"
        broker.freeze()
        assert repr(broker) == "<InProcessBroker frozen connections=1>"
        broker.stop()
        assert repr(broker) == "<InProcessBroker stopped connections=0>"
        with pytest.raises(ConnectionRefusedError):
            await process.transport.publish([Publication("00", "{}")])


async def test_a_subscription_on_a_connection_that_was_cut_is_refused(pair: Pair) -> None:
    subscribing = asyncio.create_task(pair.waiter.transport.subscribe(["00"]))
    await asyncio.sleep(0.05)
    pair.broker.cut()
    with pytest.raises(ConnectionResetError):
        await seconds_until(subscribing)
