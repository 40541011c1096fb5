"""What a relay promises, in virtual time. The latency of the broker is 0.1 seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest
import pytest_asyncio
from anyio.abc import TaskStatus

from purgatory import DelayedValue, OperationState, Purgatory, PurgatoryNotOpen
from purgatory.relay import Key, Relay, RelayClosed, signal_text
from purgatory.relay.keys import encoded, shard_of
from purgatory.relay.transport import Publication
from purgatory.testing import InProcessBroker, InProcessTransport, VirtualTimeLoop
from tests.operations import Gate, Stop, raising
from tests.relay.processes import Pair, Process, State, Version, two_processes

pytestmark = pytest.mark.usefixtures("virtual_time")

# From publishing to receiving.
WAY = 0.2


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[Pair]:
    async with two_processes() as pair:
        yield pair


async def settled(pair: Pair) -> None:
    """Wait until subscriptions are confirmed and everything is refreshed."""
    await asyncio.sleep(1)
    assert pair.waiter.relay.statistics().waiting == 0
    pair.waiter.calls.clear()


async def seconds_until(operation: Version) -> float:
    start = asyncio.get_running_loop().time()
    # Heartbeats would let virtual time pass for ever.
    async with asyncio.timeout(5_000):
        await operation
    return asyncio.get_running_loop().time() - start


async def test_a_relay_has_nothing_to_do_with_operations_that_have_no_key() -> None:
    refreshed: list[Collection[Key]] = []

    async def refresh(keys: Collection[Key]) -> None:
        refreshed.append(keys)

    async with Purgatory() as polls:
        values = [polls.try_complete_else_watch(DelayedValue[int](None))]
        async with Relay(polls, InProcessBroker().transport(), refresh=refresh) as relay:
            values.append(polls.try_complete_else_watch(DelayedValue[int](None)))
            await asyncio.sleep(1)
            assert (relay.statistics().keys, refreshed) == (0, [])
            for value in values:
                value.complete(7)


# Signals


async def test_a_signal_wakes_a_waiter_in_another_process(pair: Pair) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    pair.writer.write("tea")
    assert await seconds_until(waiting) == pytest.approx(WAY)
    assert pair.waiter.calls == [["tea"]]


async def test_a_signal_checks_the_key_in_its_own_process_at_once(pair: Pair) -> None:
    waiting = pair.writer.park("tea")
    pair.state["tea"] = pair.writer.cache["tea"] = 1
    assert pair.writer.relay.signal("tea") == 1
    assert waiting.result() == 1


async def test_a_signal_refreshes_the_key_in_its_own_process_too(pair: Pair) -> None:
    waiting = pair.writer.park("tea")
    await asyncio.sleep(1)
    pair.writer.write("tea")
    assert not waiting.done
    assert await seconds_until(waiting) == 0


async def test_the_own_signal_that_comes_back_is_ignored(pair: Pair) -> None:
    pair.writer.park("tea", 9)
    await asyncio.sleep(1)
    pair.writer.calls.clear()
    pair.writer.write("tea")
    await asyncio.sleep(1)
    assert pair.writer.calls == [["tea"]]
    assert pair.writer.relay.statistics().arrived == 0


async def test_signalled_returns_when_the_transport_has_taken_the_signal(
    pair: Pair, virtual_time: VirtualTimeLoop
) -> None:
    start = virtual_time.time()
    pair.writer.relay.signal("coffee")
    await asyncio.sleep(0)
    # The first flush is under way. This goes with the second.
    assert await pair.writer.relay.signalled("tea") == 0
    assert virtual_time.time() - start == pytest.approx(2 * WAY)


async def test_a_signal_goes_out_though_nobody_waits_for_that_any_more(pair: Pair) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    pair.state["tea"] += 1
    with anyio.move_on_after(0.05):
        await pair.writer.relay.signalled("tea")
    assert await waiting == 1


async def test_signals_that_come_during_a_flush_go_out_together_each_key_once(pair: Pair) -> None:
    sent: list[list[Publication]] = []
    publish = pair.writer.transport.publish

    async def note(publications: list[Publication]) -> None:
        sent.append(publications)
        await publish(publications)

    pair.writer.transport.publish = note  # type: ignore[assignment, method-assign]
    for _ in range(3):
        pair.writer.relay.signal("tea")
    await asyncio.sleep(0.05)
    for _ in range(3):
        for key in ("tea", "coffee"):
            pair.writer.relay.signal(key)
    await asyncio.sleep(1)
    texts = [
        [publication.text.partition('"keys":')[2] for publication in publications] for publications in sent
    ]
    assert texts == [['["tea"]}'], ['["tea"]}', '["coffee"]}']]
    assert pair.writer.relay.statistics().signals == 9


async def test_more_keys_than_max_keys_become_the_whole_shard() -> None:
    shard = shard_of(encoded("tea"))
    others = [number for number in range(10_000) if shard_of(encoded(number)) == shard][:12]
    async with two_processes(max_keys=10) as pair:
        waiting = pair.waiter.park("tea")
        await settled(pair)
        for number in others:
            pair.writer.relay.signal(number)
        pair.writer.write("tea")
        assert await seconds_until(waiting) == pytest.approx(WAY)
        assert pair.writer.relay.statistics().collapses == 1
        assert pair.waiter.relay.statistics().arrived == 1


async def test_a_key_that_is_longer_than_a_message_wakes_its_waiters_all_the_same(pair: Pair) -> None:
    key = "tea" * 10_000
    waiting = pair.waiter.park(key)
    await settled(pair)
    pair.writer.write(key)
    assert await seconds_until(waiting) == pytest.approx(WAY)


async def test_a_text_that_somebody_else_publishes_is_a_signal(pair: Pair) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    pair.state["tea"] += 1
    channel = f"{shard_of(encoded('tea')):02x}"
    await pair.writer.transport.publish([Publication(channel, signal_text(["tea"]))])
    await waiting
    assert pair.waiter.relay.statistics().arrived == 1


async def test_a_text_that_cannot_be_read_may_mean_any_key(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    pair.state["tea"] += 1
    await pair.writer.transport.publish([Publication(f"{shard_of(encoded('tea')):02x}", "{}")])
    await waiting
    assert pair.waiter.relay.statistics().unreadable == 1
    assert "cannot be read" in caplog.text


async def test_signals_that_nobody_waits_for_refresh_nothing(pair: Pair) -> None:
    pair.waiter.park("tea")
    await settled(pair)
    for number in range(1_000):
        pair.writer.relay.signal(number)
    await asyncio.sleep(1)
    assert pair.waiter.calls == []


async def test_a_signal_of_a_key_without_an_encoding_is_refused(pair: Pair) -> None:
    with pytest.raises(TypeError, match="not float"):
        pair.writer.relay.signal(1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not bool"):
        pair.waiter.purgatory.try_complete_else_watch(Gate(), ["tea", True])
    assert pair.waiter.purgatory.statistics().pending == 0
    assert pair.writer.relay.statistics().signals == 0


@pytest.mark.parametrize("call", ["signal", "signalled"])
async def test_a_signal_from_another_thread_is_refused_before_anything_is_sent(pair: Pair, call: str) -> None:
    relay = pair.writer.relay

    def signal() -> None:
        if call == "signal":
            relay.signal("tea")
        else:
            asyncio.run(relay.signalled("tea"))

    with (
        ThreadPoolExecutor(1) as thread,
        pytest.raises(RuntimeError, match=r"call_soon_threadsafe\(relay\.signal, key\)"),
    ):
        thread.submit(signal).result()
    assert relay.statistics().signals == 0


async def test_a_hook_that_raises_does_not_keep_the_signal_from_others(pair: Pair) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    pair.writer.purgatory.try_complete_else_watch(Gate(), ["tea"]).trying = raising(Stop())
    with pytest.raises(Stop):
        pair.writer.write("tea")
    assert await waiting == 1


# Refreshing


async def test_a_key_that_is_signalled_during_its_refresh_is_refreshed_once_more(pair: Pair) -> None:
    pair.waiter.slowness = 1
    waiting = pair.waiter.park("tea", 2)
    await asyncio.sleep(5)
    pair.waiter.calls.clear()
    pair.writer.write("tea")
    await asyncio.sleep(WAY + 0.6)
    # The refresh has read the first version.
    pair.writer.write("tea")
    assert await seconds_until(waiting) == pytest.approx(0.4 + 1)
    assert pair.waiter.calls == [["tea"], ["tea"]]


async def test_keys_are_refreshed_in_batches_one_call_at_a_time() -> None:
    async with two_processes(max_batch=10) as pair:
        pair.waiter.slowness = 0.1
        for number in range(25):
            pair.waiter.park(number)
        await asyncio.sleep(5)
        calls = pair.waiter.calls
        assert max(map(len, calls)) == 10
        assert {key for call in calls for key in call} == set(range(25))


async def test_a_write_between_parking_and_subscribing_is_seen(pair: Pair) -> None:
    # It reads the state before the write, which is before the confirmation.
    waiting = pair.waiter.park("tea")
    await asyncio.sleep(0.05)
    pair.writer.write("tea")
    assert await seconds_until(waiting) == pytest.approx(0.15)


async def test_a_client_who_asks_again_soon_finds_a_fresh_value(pair: Pair) -> None:
    pair.waiter.park("tea").cancel()
    pair.waiter.park("tea")
    await settled(pair)
    for version in range(1, 5):
        pair.writer.write("tea")
        await asyncio.sleep(1)
        assert pair.waiter.park("tea", version).done
        pair.waiter.park("tea", version + 1)
    assert pair.waiter.calls == [["tea"]] * 4


async def test_a_value_that_was_signalled_while_nobody_waited_is_unknown(pair: Pair) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    waiting.cancel()
    pair.writer.write("tea")
    await asyncio.sleep(1)
    assert pair.waiter.calls == []
    assert await seconds_until(pair.waiter.park("tea")) == 0


async def test_a_channel_is_left_when_nobody_has_waited_for_long() -> None:
    async with two_processes(linger=20) as pair:
        pair.waiter.park("tea").cancel()
        await settled(pair)
        transport = pair.waiter.transport
        assert isinstance(transport, InProcessTransport)
        connection = transport._connection
        assert connection is not None
        assert len(connection.channels) == 2
        await asyncio.sleep(15)
        assert len(connection.channels) == 2
        await asyncio.sleep(10)
        assert len(connection.channels) == 1
        assert pair.waiter.relay.statistics().keys == 0
        waiting = pair.waiter.park("tea")
        await settled(pair)
        pair.writer.write("tea")
        assert await waiting == 1


async def test_a_channel_that_is_wanted_again_while_it_is_left_is_subscribed_again() -> None:
    async with two_processes(linger=20) as pair:
        pair.waiter.park("tea").cancel()
        relay = pair.waiter.relay
        unsubscribe = pair.waiter.transport.unsubscribe
        waiting: list[Version] = []
        left = asyncio.Event()

        async def wait_meanwhile(channels: Any) -> None:
            waiting.append(pair.waiter.park("tea"))
            left.set()
            await unsubscribe(channels)

        pair.waiter.transport.unsubscribe = wait_meanwhile  # type: ignore[method-assign]
        await left.wait()
        await settled(pair)
        assert relay._interest.entries["tea"].shard.confirmed
        pair.writer.write("tea")
        assert await seconds_until(waiting[0]) == pytest.approx(WAY)


async def test_without_refresh_the_keys_are_only_checked() -> None:
    broker, state = InProcessBroker(latency=0.1), State()
    purgatory = Purgatory()
    relay = Relay(purgatory, broker.transport())
    async with purgatory, Process(broker, state) as writer, relay:
        waiting = purgatory.try_complete_else_watch(Version(state, "tea", 1), ["tea"])
        await asyncio.sleep(1)
        writer.write("tea")
        assert await seconds_until(waiting) == pytest.approx(WAY)
        # Between parking and subscribing.
        waiting = purgatory.try_complete_else_watch(Version(state, "coffee", 1), ["coffee"])
        writer.write("coffee")
        assert await seconds_until(waiting) == pytest.approx(WAY)
        waiting = purgatory.try_complete_else_watch(Version(state, "tea", 2), ["tea"])
        state["tea"] += 1
        assert relay.signal("tea") == 1
        assert relay.statistics().refreshes == 0


async def test_operations_that_wait_already_when_the_relay_is_entered_are_woken() -> None:
    broker, state = InProcessBroker(latency=0.1), State()
    async with Process(broker, state) as writer:
        waiter = Process(broker, state)
        waiter.purgatory.start()
        waiting = waiter.park("tea")
        async with waiter.relay:
            await asyncio.sleep(1)
            writer.write("tea")
            assert await seconds_until(waiting) == pytest.approx(WAY)
        await waiter.purgatory.aclose()


async def test_a_key_without_an_encoding_that_is_watched_already_is_refused() -> None:
    async with Purgatory() as purgatory:
        waiting = purgatory.try_complete_else_watch(Gate(), [1.5])
        with pytest.raises(TypeError, match="not float"):
            await Relay(purgatory, InProcessBroker().transport()).__aenter__()
        assert not waiting.done
        purgatory.try_complete_else_watch(Gate(), [2.5])


async def test_many_watchers_are_checked_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purgatory.relay.refresher._SLICE", 0)
    async with two_processes() as pair:
        waiting = [pair.waiter.park(number) for number in range(10)]
        await settled(pair)
        for number in range(10):
            pair.state[number] += 1
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        pair.waiter.relay._link.missed()
        task = asyncio.create_task(count_turns())
        for operation in waiting:
            await operation
        task.cancel()
        assert turns >= 3 * 10


# Failing refreshes


async def test_a_refresh_that_fails_is_made_again_and_reported(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    pair.waiter.failure = ConnectionError("the database is away")
    pair.writer.write("tea")
    await asyncio.sleep(20)
    assert 5 <= len(pair.waiter.calls) <= 15
    assert "the refresh of 1 keys failed" in caplog.text
    assert "the database is away" in caplog.text
    assert pair.waiter.relay.statistics().refresh_failures == len(pair.waiter.calls)
    assert pair.waiter.relay.statistics().waiting >= 1
    pair.waiter.failure = None
    assert await seconds_until(waiting) <= 5


async def test_a_key_that_makes_every_refresh_fail_does_not_hold_up_the_others(pair: Pair) -> None:
    pair.waiter.poison = "bad"
    pair.waiter.slowness = 0.01
    pair.waiter.park("bad")
    waiting = [pair.waiter.park(number) for number in range(100)]
    await asyncio.sleep(10)
    for number in range(100):
        pair.writer.write(number)
    await asyncio.sleep(1)
    assert all(operation.done for operation in waiting)
    pair.waiter.calls.clear()
    await asyncio.sleep(10)
    assert pair.waiter.calls == [["bad"]] * len(pair.waiter.calls)
    pair.state["bad"] += 1
    pair.waiter.poison = None
    await asyncio.sleep(10)
    assert pair.waiter.cache["bad"] == 1


async def test_a_refresh_that_never_returns_is_given_up(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    pair.waiter.slowness = 10_000
    pair.writer.write("tea")
    await asyncio.sleep(1)
    pair.waiter.slowness = 0
    assert await seconds_until(waiting) <= 30
    assert "TimeoutError" in caplog.text


async def test_a_refresh_that_awaits_something_cancelled_is_made_again_and_reported(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    pair.waiter.failure = asyncio.CancelledError()
    pair.writer.write("tea")
    await asyncio.sleep(2)
    assert pair.waiter.relay.statistics().refresh_failures > 1
    assert "refresh raised CancelledError: something that it reads was cancelled" in caplog.text
    pair.waiter.failure = None
    assert await seconds_until(waiting) <= 5


async def test_a_hook_that_reads_something_cancelled_does_not_end_the_relay(
    pair: Pair, reported: list[dict[str, Any]]
) -> None:
    waiting = pair.waiter.park("tea")
    gate = Gate()
    pair.waiter.purgatory.try_complete_else_watch(gate, ["milk"])
    await settled(pair)
    gate.trying = raising(asyncio.CancelledError())
    pair.writer.write("milk")
    await asyncio.sleep(1)
    assert gate.state is OperationState.FAILED
    pair.writer.write("tea")
    assert await seconds_until(waiting) <= 5
    assert pair.waiter.relay.statistics().connected


@pytest.mark.parametrize("call", ["run", "subscribe", "unsubscribe", "publish"])
async def test_a_transport_that_awaits_something_cancelled_is_tried_again_and_reported(
    call: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        monkeypatch.undo()
        raise asyncio.CancelledError

    caplog.set_level(logging.INFO)

    async with two_processes(linger=1) as pair:
        pair.waiter.park("milk", timeout=1)
        await asyncio.sleep(1)
        process = pair.writer if call == "publish" else pair.waiter
        monkeypatch.setattr(process.transport, call, fail)
        if call == "run":
            pair.broker.cut()
        waiting = pair.waiter.park("tea")
        pair.writer.write("tea")
        assert await seconds_until(waiting) <= 5
        await asyncio.sleep(10)
        assert pair.waiter.relay.statistics().connected
    assert "the transport raised CancelledError: something that it reads was cancelled" in caplog.text


# Opening and closing


async def test_entering_raises_what_the_transport_raises() -> None:
    broker = InProcessBroker()
    broker.stop()
    async with Purgatory() as purgatory:
        relay = Relay(purgatory, broker.transport())
        with pytest.raises(ConnectionRefusedError, match="the broker is stopped"):
            await relay.__aenter__()
        assert repr(relay) == "<Relay of 'purgatory' failed>"
        with pytest.raises(RelayClosed, match="cannot signal"):
            relay.signal("tea")
        # The purgatory is as it was.
        purgatory.try_complete_else_watch(Gate(), [1.5])


async def test_entering_raises_why_the_connection_has_ended_and_not_what_failed_because_of_that() -> None:
    process = Process(InProcessBroker(), State())
    ended = asyncio.Event()

    async def run(_: object, *, task_status: TaskStatus[None]) -> None:
        task_status.started()
        await asyncio.sleep(1)
        ended.set()
        raise OSError("the server has too many clients")

    async def subscribe(channels: Sequence[str]) -> None:
        await ended.wait()
        raise ConnectionError("there is no connection any more")

    process.transport.run = run  # type: ignore[method-assign, assignment]
    process.transport.subscribe = subscribe  # type: ignore[method-assign]
    with pytest.raises(OSError, match="too many clients"):
        await process.__aenter__()


async def test_entering_gives_up_a_server_that_does_not_answer(virtual_time: VirtualTimeLoop) -> None:
    broker = InProcessBroker()
    broker.freeze()
    async with Purgatory() as purgatory:
        with pytest.raises(
            TimeoutError, match="within 6 seconds the server has not answered: check the address"
        ):
            await Relay(purgatory, broker.transport(), heartbeat=9).__aenter__()
        assert virtual_time.time() <= 9


async def test_entering_gives_up_a_server_that_does_not_confirm_the_subscriptions(
    virtual_time: VirtualTimeLoop,
) -> None:
    process = Process(InProcessBroker(), State(), heartbeat=9)

    async def ignore(channels: Sequence[str]) -> None:
        await asyncio.get_running_loop().create_future()

    process.transport.subscribe = ignore  # type: ignore[method-assign]
    with pytest.raises(TimeoutError, match="within 6 seconds the server has not confirmed the subscriptions"):
        await process.__aenter__()
    assert virtual_time.time() <= 9


async def test_entering_returns_when_the_first_heartbeat_is_back(virtual_time: VirtualTimeLoop) -> None:
    broker = InProcessBroker(latency=0.1)
    async with Process(broker, State()) as process:
        # To connect, to subscribe, and the way of the heartbeat.
        assert virtual_time.time() == pytest.approx(0.2 + 0.2 + WAY)
        assert process.relay.statistics().connected


async def test_entering_gives_up_a_server_that_brings_no_heartbeat_back(
    virtual_time: VirtualTimeLoop,
) -> None:
    broker = InProcessBroker()
    broker.losing = True
    with pytest.raises(TimeoutError, match="within 6 seconds no heartbeat has come back"):
        async with asyncio.timeout(100):
            await Process(broker, State(), heartbeat=9).__aenter__()
    assert virtual_time.time() <= 9


async def test_entering_raises_what_publishing_raises() -> None:
    process = Process(InProcessBroker(), State())

    async def refuse(publications: Sequence[Publication]) -> None:
        raise PermissionError("it may not publish")

    process.transport.publish = refuse  # type: ignore[method-assign]
    with pytest.raises(PermissionError, match="it may not publish"):
        await process.__aenter__()


async def test_entering_raises_one_error_when_connections_are_lost_at_the_same_time() -> None:
    process = Process(InProcessBroker(), State())
    lost = asyncio.Event()

    async def run(_: object, *, task_status: TaskStatus[None]) -> None:
        task_status.started()
        await lost.wait()
        raise ConnectionResetError("the server has died")

    async def subscribe(channels: Sequence[str]) -> None:
        """It is confirmed at once."""

    async def publish(publications: Sequence[Publication]) -> None:
        lost.set()
        await asyncio.sleep(0)
        raise ConnectionResetError("the server has died")

    process.transport.run = run  # type: ignore[method-assign, assignment]
    process.transport.subscribe = subscribe  # type: ignore[method-assign]
    process.transport.publish = publish  # type: ignore[method-assign]
    with pytest.raises(ConnectionResetError, match="has died"):
        await process.__aenter__()


async def test_entering_can_be_cancelled() -> None:
    broker = InProcessBroker()
    broker.freeze()
    async with Purgatory() as purgatory:
        transport = broker.transport()
        with anyio.move_on_after(1) as scope:
            await Relay(purgatory, transport).__aenter__()
        assert scope.cancelled_caught
        assert transport.closed
        purgatory.try_complete_else_watch(Gate(), [1.5])


async def test_the_purgatory_has_to_be_open() -> None:
    relay = Relay(Purgatory(), InProcessBroker().transport())
    with pytest.raises(RelayClosed, match="use `async with`"):
        relay.signal("tea")
    with pytest.raises(PurgatoryNotOpen, match="enter it before its relay"):
        await relay.run()
    await relay.aclose()
    assert not relay.statistics().connected
    assert relay.statistics().heartbeat_age is None
    assert repr(relay) == "<Relay of 'purgatory' new>"


async def test_a_relay_is_entered_once(pair: Pair) -> None:
    assert repr(pair.writer.relay) == "<Relay of 'polls' connected>"
    with pytest.raises(RuntimeError, match="entered before: make a new one"):
        await pair.writer.relay.run()
    with pytest.raises(RuntimeError, match="it can have one only"):
        await Relay(pair.writer.purgatory, pair.broker.transport()).run()


async def test_closing_publishes_what_waits(pair: Pair) -> None:
    waiting = pair.waiter.park("tea")
    await settled(pair)
    async with Process(pair.broker, pair.state) as third:
        third.write("tea")
    assert isinstance(third.transport, InProcessTransport)
    assert third.transport.closed
    assert await waiting == 1


async def test_closing_does_not_wait_long_for_a_transport_that_is_away(
    caplog: pytest.LogCaptureFixture, virtual_time: VirtualTimeLoop
) -> None:
    broker = InProcessBroker()
    async with Process(broker, State(), heartbeat=9) as process:
        broker.stop()
        taken = asyncio.create_task(process.relay.signalled("tea"))
        await asyncio.sleep(1)
        start = virtual_time.time()
    assert virtual_time.time() - start == 9
    assert "ends before its last signals could be published" in caplog.text
    with pytest.raises(RelayClosed, match="may not have been published"):
        await taken


async def test_after_closing_a_key_is_checked_in_this_process_only(pair: Pair) -> None:
    third = Process(pair.broker, pair.state)
    async with third:
        pass
    async with Purgatory() as purgatory:
        relay = Relay(purgatory, pair.broker.transport())
        async with relay:
            gate = purgatory.try_complete_else_watch(Gate(), ["tea"])
        gate.opened = True
        assert relay.signal("tea") == 1
        assert repr(relay) == "<Relay of 'purgatory' closed>"
        with pytest.raises(RelayClosed, match="signals nothing any more"):
            await relay.signalled("tea")
        await relay.aclose()
        # Other keys are allowed again.
        purgatory.try_complete_else_watch(Gate(), [1.5])


async def test_an_exception_that_leaves_the_block_is_raised_as_it_is_and_closes_at_once(
    virtual_time: VirtualTimeLoop,
) -> None:
    broker = InProcessBroker()

    async def leave_by_an_exception() -> None:
        async with Purgatory() as purgatory, Relay(purgatory, broker.transport()) as relay:
            broker.stop()
            relay.signal("tea")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await leave_by_an_exception()
    assert virtual_time.time() == 0


async def test_a_relay_runs_in_a_task_group(pair: Pair) -> None:
    async with Purgatory() as purgatory, anyio.create_task_group() as group:
        relay = Relay(purgatory, pair.broker.transport())
        await group.start(relay.run)
        gate = purgatory.try_complete_else_watch(Gate(opened=False), ["tea"])
        await asyncio.sleep(1)
        gate.opened = True
        pair.writer.write("tea")
        await gate
        await relay.aclose()
        await relay.aclose()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("a fault of the library"), "a fault of the library"),
        (asyncio.CancelledError(), "the relay raised CancelledError: something that it reads was cancelled"),
    ],
)
async def test_a_relay_that_fails_says_so(
    pair: Pair,
    reported: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    words: str,
) -> None:
    third = Process(pair.broker, pair.state)
    relay = third.relay

    async def fail() -> None:
        async with third:
            await relay.signalled("tea")
            monkeypatch.setattr(relay._interest, "take_turns", raising(error))
            await asyncio.sleep(20)
            assert [str(context["exception"]) for context in reported] == [words]
            assert "hears no signals any more" in reported[0]["message"]
            assert not relay.statistics().connected
            with pytest.raises(RelayClosed):
                relay.signal("tea")

    with pytest.raises((ValueError, RuntimeError), match=words):
        await fail()


async def test_a_relay_whose_task_somebody_cancels_says_so(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    third = Process(pair.broker, pair.state)

    async def fail() -> None:
        async with third:
            assert third.relay._task is not None
            third.relay._task.cancel()
            await asyncio.sleep(1)
            words = "hears no signals any more: somebody has cancelled the task of the relay"
            assert words in caplog.text
            with pytest.raises(RelayClosed):
                third.relay.signal("tea")

    with pytest.raises(RuntimeError, match="somebody has cancelled the task of the relay"):
        await fail()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError("it is stuck"), "OSError: it is stuck"),
        (
            asyncio.CancelledError(),
            "RuntimeError: the transport raised CancelledError: something that it reads",
        ),
    ],
)
async def test_a_transport_that_cannot_be_closed_is_reported(
    pair: Pair, caplog: pytest.LogCaptureFixture, error: BaseException, words: str
) -> None:
    third = Process(pair.broker, pair.state)
    third.transport.aclose = raising(error)  # type: ignore[method-assign]
    async with third:
        pass
    assert f"the transport could not be closed: {words}" in caplog.text


@pytest.mark.parametrize("option", ["heartbeat", "anti_entropy", "linger", "max_batch", "max_keys"])
async def test_numbers_that_are_not_positive_are_refused(option: str) -> None:
    with pytest.raises(ValueError, match=option):
        Relay(Purgatory(), InProcessBroker().transport(), **{option: 0})  # type: ignore[arg-type]


# Work


async def test_an_idle_relay_sends_heartbeats_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with two_processes(heartbeat=9) as pair:
        pair.waiter.park("tea").cancel()
        await asyncio.sleep(100)
        before = pair.waiter.relay.statistics()
        pair.waiter.calls.clear()
        await asyncio.sleep(300)
        after = pair.waiter.relay.statistics()
        assert after.published - before.published == 100
        assert after.arrived == before.arrived
        assert pair.waiter.calls == []
        assert after.heartbeat_age is not None
        assert after.heartbeat_age <= 3
        assert caplog.text == ""


async def test_signals_for_thousands_of_keys_that_nobody_watches_any_more_hold_up_no_refresh(
    pair: Pair,
) -> None:
    many = [pair.waiter.park(f"key {number}") for number in range(2_500)]
    await settled(pair)
    for number, waiting in enumerate(many):
        pair.waiter.relay.signal(f"key {number}")
        waiting.cancel()
    pair.waiter.park("tea")
    await settled(pair)
    pair.waiter.park("coffee")
    await asyncio.sleep(1)
    assert pair.waiter.calls == [["coffee"]]
