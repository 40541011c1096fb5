"""A stream whose operations are done without events does not ask again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from purgatory import AsyncDelayedOperation, DelayedOperation, Purgatory
from purgatory.testing import VirtualTimeLoop
from purgatory.web import EventStream, ServerSentEvent
from tests.operations import Gate, a_few_turns
from tests.web.poll_client import DISCONNECT, parked
from tests.web.stream_client import StreamClient


class Ready(AsyncDelayedOperation[str]):
    """Is done as soon as its condition was evaluated."""

    async def condition(self) -> str:
        return "ready"


def gate(timeout: float | None) -> DelayedOperation[str]:
    return Gate(timeout, opened=True)


def without_events(
    purgatory: Purgatory, make: Callable[[], DelayedOperation[str]], reads: list[str | None]
) -> EventStream:
    def read(last: str | None) -> DelayedOperation[str]:
        reads.append(last)
        return make()

    return EventStream(purgatory, read, ["key"], lambda name: [])


@pytest.mark.parametrize("make", [gate, Ready])
@pytest.mark.parametrize(("timeout", "pause"), [(10.0, 10), (3600.0, 15), (None, 15)])
async def test_an_operation_that_is_done_without_events_is_followed_by_the_next_one_after_a_pause(
    virtual_time: VirtualTimeLoop,
    make: Callable[[float | None], DelayedOperation[str]],
    timeout: float | None,
    pause: int,
) -> None:
    reads: list[str | None] = []
    async with Purgatory() as purgatory:
        client = StreamClient()
        task = client.request(without_events(purgatory, lambda: make(timeout), reads))
        await asyncio.sleep(pause * 3 - 1)
        assert len(reads) == 3
        # The stream is open, and the proxies see that it is.
        assert client.status == 200
        assert client.body.replace(b":\n\n", b"") == b""
        assert 3 <= client.body.count(b":\n\n") <= 4
        await purgatory.aclose()
        await task
        assert client.complete


@pytest.mark.parametrize("make", [gate, Ready])
async def test_events_that_leave_the_position_where_it_was_are_followed_by_the_next_operation_after_a_pause(
    virtual_time: VirtualTimeLoop, make: Callable[[float | None], DelayedOperation[str]]
) -> None:
    """The id of such an event is the position of the event itself, in place of the position behind it."""
    async with Purgatory() as purgatory:
        client = StreamClient((b"last-event-id", b"7"))
        stream = EventStream(
            purgatory, lambda last: make(10), ["key"], lambda name: [ServerSentEvent("7", name)]
        )
        task = client.request(stream)
        await asyncio.sleep(29)
        assert client.body.count(b"id: 7\n") == 3
        await purgatory.aclose()
        await task


async def test_a_pause_is_logged_with_what_to_do(
    purgatory: Purgatory, caplog: pytest.LogCaptureFixture
) -> None:
    client = StreamClient()
    task = client.request(without_events(purgatory, lambda: gate(10), []))
    await parked(purgatory, client)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("purgatory.web", "WARNING")
    assert "Gate" in record.getMessage()
    assert "send an event without data" in record.getMessage()
    client.send(DISCONNECT)
    await task


async def test_a_client_that_leaves_in_a_pause_ends_the_stream(purgatory: Purgatory) -> None:
    client = StreamClient()
    task = client.request(without_events(purgatory, lambda: gate(10), []))
    await parked(purgatory, client)
    client.send(DISCONNECT)
    await task
    assert purgatory.statistics().pending == 0


async def test_a_withdrawal_by_other_code_in_a_pause_ends_the_stream(purgatory: Purgatory) -> None:
    client = StreamClient()
    task = client.request(without_events(purgatory, lambda: gate(10), []))
    await parked(purgatory, client)
    assert len(purgatory.cancel_for_key("key")) == 1
    await task
    assert client.complete


async def test_events_without_data_are_followed_by_the_next_operation_at_once(purgatory: Purgatory) -> None:
    def read(last: str | None) -> DelayedOperation[str]:
        return Gate(10, last or "0", opened=last != "3")

    def moved(last: str) -> list[ServerSentEvent]:
        return [ServerSentEvent(str(int(last) + 1))]

    client = StreamClient()
    task = client.request(EventStream(purgatory, read, ["key"], moved))
    await parked(purgatory, client)
    assert client.body == b"id: 1\n\nid: 2\n\nid: 3\n\n"
    await a_few_turns()
    client.send(DISCONNECT)
    await task
