"""Each measurement, with little to do, in the processes that are really measured."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from benchmarks.broker import processes
from benchmarks.longpoll import wake_all, wake_one
from benchmarks.longpoll.clients import Client, allow_open_files
from benchmarks.longpoll.servers import Running, running
from benchmarks.longpoll.ways import WAYS

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(not processes.AVAILABLE, reason="there is no /proc"),
]


@pytest.mark.parametrize("way", WAYS)
def test_one_record_wakes_all(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_all, "SETTLED", 0.05)
    sample = wake_all.measure(way, "asyncio", polls=60)
    assert 0 < sample["p50_ms"] <= sample["p99_ms"]
    assert sample["round_trip_us"] == pytest.approx(sample["park_us"] + sample["processor_us"])
    assert all(
        figure > 0 for metric, figure in sample.items() if metric not in ("poll_kib", "connection_kib")
    )


@pytest.mark.parametrize("way", ["purgatory", "condition"])
def test_a_record_to_a_topic_is_no_work_for_the_others(way: str) -> None:
    sample = wake_one.measure(way, "asyncio", polls=40, records=20, alone=False)
    assert sample["looks"] == 2
    assert 0 < sample["p50_ms"] <= sample["p99_ms"]


@pytest.mark.parametrize(("way", "least", "most"), [("purgatory", 2, 2), ("condition", 30, 41)])
def test_a_record_for_one_client_is_looked_at_by_that_alone_in_a_purgatory(
    way: str, least: int, most: int
) -> None:
    sample = wake_one.measure(way, "asyncio", polls=40, records=20, alone=True)
    assert least <= sample["looks"] <= most


def test_a_server_that_does_not_start_says_why() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)the server with hope did not start:.*KeyError: 'hope'"):
        wake_one.measure("hope", "asyncio", polls=1, records=1, alone=True)


def test_a_server_ends_with_its_block() -> None:
    with running("purgatory", "asyncio") as server:
        os.kill(server.process_id, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(server.process_id, 0)


@pytest_asyncio.fixture
async def parrot() -> AsyncIterator[Running]:
    """A server that answers with the body of the request, in pieces."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"Content-Length: 0" not in head:
            for byte in (await reader.read(1000)).replace(b"\n", b"\r\n"):
                writer.write(bytes((byte,)))
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield Running(host, port, os.getpid())


async def test_an_answer_is_whole_when_it_is_told(parrot: Running) -> None:
    client = await Client.connected(parrot)
    answer = await client.ask("POST", "/", 'HTTP/1.1 200 OK\nContent-Length: 13\n\n{"spoken": 1}')
    assert answer.content == {"spoken": 1}
    client.close()


@pytest.mark.parametrize(
    ("said", "error"),
    [("HTTP/1.1 503 Service Unavailable\nContent-Length: 0\n\n", "answered 'HTTP/1.1 503"), ("", "hung up")],
)
async def test_what_is_no_answer_is_an_error(parrot: Running, said: str, error: str) -> None:
    client = await Client.connected(parrot)
    with pytest.raises(ConnectionError, match=error):
        await client.ask("POST", "/", said)
    client.close()


def test_more_files_than_may_be_open_are_refused() -> None:
    with pytest.raises(OSError, match=r"open files are needed, and \d+ allowed"):
        allow_open_files(1 << 40)
