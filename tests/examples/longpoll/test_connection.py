"""A client that is too slow loses its connection; a client that waits for the server keeps it.

The tests run in virtual time, over connections in memory. `test_sockets` repeats some of them on sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from examples.longpoll.connection import UNSENT_BYTES
from examples.longpoll.limits import Limits
from examples.longpoll.service import Service
from purgatory.testing import VirtualTimeLoop
from tests.examples.longpoll.memory import Client, MemoryServer

KEEP_ALIVE = 5
LIMITS = Limits(wait=60, client_timeout=2, head_bytes=2_000, pending=4, connections=5)

POST = "POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
TOPIC_BYTES = 16 * 16_000
"""The size of an answer with all records of the topic that `fill_topic` fills."""


@pytest_asyncio.fixture
async def server(virtual_time: VirtualTimeLoop) -> AsyncIterator[MemoryServer]:
    service = Service(LIMITS)
    async with service.running():
        yield MemoryServer(service, KEEP_ALIVE)


async def until_idle() -> None:
    """Let everything run that can run now. Virtual time passes only when nothing else is left to do."""
    await asyncio.sleep(0.001)


async def fill_topic(service: Service) -> None:
    for _ in range(16):
        await service.topics.append("t", b'"%s"' % (b"x" * 16_000))


@pytest.mark.parametrize(
    "sent", ["GET", POST, POST + "Content-Length: 10\r\n\r\n12345"], ids=["line", "head", "body"]
)
async def test_a_client_that_does_not_finish_its_request_in_time_loses_its_connection(
    server: MemoryServer, sent: str
) -> None:
    client = server.connect()
    client.send(sent)
    assert await client.until_lost() == pytest.approx(2, abs=0.01)
    assert server.service.connections.statistics().pending == 0


async def test_a_client_that_sends_nothing_loses_its_connection(server: MemoryServer) -> None:
    assert await server.connect().until_lost() == pytest.approx(2, abs=0.01)


async def test_a_head_that_trickles_in_gets_no_more_time(server: MemoryServer) -> None:
    client = server.connect()
    client.get("/presence")
    assert await client.status() == 200
    lost = asyncio.create_task(client.until_lost())
    client.send("GET /")
    while not lost.done():
        await asyncio.sleep(0.3)
        client.send("x")
    assert await lost == pytest.approx(2, abs=0.01)


async def test_a_poll_may_wait_longer_than_the_deadline_of_clients(
    server: MemoryServer, virtual_time: VirtualTimeLoop
) -> None:
    client = server.connect()
    for _ in range(2):
        client.get("/topics/t?wait=30")
        assert await client.status() == 200
    assert virtual_time.time() == pytest.approx(60, abs=0.01)
    assert server.service.polls.statistics().expired == 2


async def test_a_connection_may_be_idle_between_requests(server: MemoryServer) -> None:
    client = server.connect()
    for _ in range(3):
        client.get("/presence")
        assert await client.status() == 200
        await asyncio.sleep(KEEP_ALIVE - 0.1)
    assert await client.until_lost() == pytest.approx(3 * KEEP_ALIVE - 0.2, abs=0.01)


async def test_blank_lines_between_requests_do_not_keep_a_connection_open(server: MemoryServer) -> None:
    client = server.connect()
    client.get("/presence")
    assert await client.status() == 200
    lost = asyncio.create_task(client.until_lost())
    while not lost.done():
        # The first of them ends uvicorn's own timeout of idle connections.
        client.send("\r\n")
        await asyncio.sleep(0.5)
    assert await lost == pytest.approx(KEEP_ALIVE + 2, abs=0.01)


async def test_a_body_that_arrives_after_the_answer_does_not_keep_a_connection_open(
    server: MemoryServer,
) -> None:
    client = server.connect()
    refused = "POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
    client.send(refused)
    assert await client.status() == 415
    client.send("12345")
    client.get("/presence")
    assert await client.status() == 200
    client.send(refused)
    assert await client.status() == 415
    client.send("12345")
    assert await client.until_lost() == pytest.approx(KEEP_ALIVE + 2, abs=0.01)


async def test_a_client_that_leaves_withdraws_its_poll(server: MemoryServer) -> None:
    polls = server.service.polls
    client = server.connect()
    client.get("/topics/t?wait=60")
    await until_idle()
    assert polls.statistics().pending == 1
    client.leave()
    await until_idle()
    assert polls.statistics().cancelled == 1
    assert polls.statistics().pending == server.service.connections.statistics().pending == 0


@pytest.mark.parametrize("together", [True, False])
async def test_a_client_that_leaves_withdraws_all_its_pipelined_polls(
    server: MemoryServer, together: bool
) -> None:
    polls = server.service.polls
    client = server.connect()
    client.get("/topics/t?wait=60")
    if not together:
        await until_idle()
    client.get("/topics/t?wait=60", times=2)
    client.leave()
    await until_idle()
    # The other two have not begun.
    assert (polls.statistics().cancelled, polls.statistics().pending) == (1, 0)
    assert server.service.connections.statistics().pending == 0


@pytest.mark.parametrize(
    "before", ["", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"], ids=["first", "pipelined"]
)
@pytest.mark.parametrize(
    "head", ["GET /" + "x" * 4_000, POST + "X-Long: " + "x" * 4_000], ids=["url", "headers"]
)
async def test_a_head_that_is_too_long_closes_the_connection(
    server: MemoryServer, before: str, head: str
) -> None:
    client = server.connect()
    client.send(before + head)
    assert await client.status() == 431
    assert await client.until_lost() < 0.1
    # Once only.
    assert await client.status() != 431


@pytest.mark.parametrize(
    "head",
    [
        "GET /presence?" + "x" * 4_000 + " HTTP/1.1\r\n\r\n",
        f"GET /presence HTTP/1.1\r\nHost: localhost\r\nX-Long: {'x' * 4_000}\r\n\r\n",
        "GET /presence HTTP/1.1\r\nHost: localhost\r\n" + "X-Short: x\r\n" * 400 + "\r\n",
        f"{POST}X-Long: {'x' * 4_000}\r\nContent-Length: 1\r\n\r\n1",
    ],
    ids=["url", "header", "headers", "body"],
)
async def test_a_head_that_is_too_long_is_refused_also_when_it_is_complete_at_once(
    server: MemoryServer, head: str
) -> None:
    client = server.connect()
    client.send(head)
    assert await client.status() == 431
    assert await client.until_lost() < 0.1
    assert server.service.topics.log("t").end == 0


async def test_pipelined_requests_do_not_count_as_one_long_head(server: MemoryServer) -> None:
    client = server.connect()
    client.send(
        f"GET /presence HTTP/1.1\r\nHost: localhost\r\nX-Long: {'x' * 200}\r\n\r\n" * 15 + "GET /pres"
    )
    assert await client.statuses(15) == {200}
    client.send("ence HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert await client.status() == 200


async def test_successive_requests_do_not_count_as_one_long_head(server: MemoryServer) -> None:
    client = server.connect()
    client.send("\r\n")
    for _ in range(15):
        client.send(f"GET /presence HTTP/1.1\r\nHost: localhost\r\nX-Long: {'x' * 200}")
        client.send("\r\n\r\n")
        assert await client.status() == 200


async def test_a_connection_may_have_16_unanswered_requests_and_is_closed_at_one_more(
    server: MemoryServer,
) -> None:
    polls = server.service.polls
    client, another = server.connect(), server.connect()
    for one in (client, another):
        one.get("/topics/t?wait=60")
    await until_idle()
    client.get("/topics/t", times=15)
    another.get("/topics/t", times=16)
    assert await another.status() == 400
    await until_idle()
    assert polls.statistics().cancelled == 1
    await server.service.topics.append("t", b"1")
    assert await client.statuses(16) == {200}


async def test_reading_stops_at_a_limit_behind_a_request_that_is_not_answered_yet(
    server: MemoryServer,
) -> None:
    client = server.connect()
    client.get("/topics/t?wait=60")
    await until_idle()
    client.send(POST + f"Content-Length: 100000\r\n\r\n{'1' * 100_000}")
    await until_idle()
    assert not client.transport.is_reading()
    await server.service.topics.append("t", b"1")
    assert [await client.status(), await client.status()] == [200, 413]


async def test_bytes_that_are_not_http_get_a_400(server: MemoryServer) -> None:
    client = server.connect()
    client.send("\x16\x03\x01\x02 hello\r\n\r\n" + "x" * 4_000)
    assert await client.status() == 400


async def test_an_unknown_method_is_refused(server: MemoryServer) -> None:
    client = server.connect()
    client.send("BREW /topics/t HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert await client.status() in (400, 405)


async def test_an_answer_that_its_client_does_not_read_in_time_is_dropped(server: MemoryServer) -> None:
    await fill_topic(server.service)
    client = server.connect()
    client.get("/topics/t", times=16)
    await until_idle()
    assert client.transport.get_write_buffer_size() > TOPIC_BYTES - 20_000
    assert await client.until_lost() == pytest.approx(2, abs=0.01)
    assert server.service.connections.statistics().pending == 0


async def test_a_client_that_does_not_read_gets_no_more_time_by_another_request(server: MemoryServer) -> None:
    await fill_topic(server.service)
    client = server.connect()
    client.get("/topics/t")
    await asyncio.sleep(1.5)
    client.send("GET /half")
    assert await client.until_lost() == pytest.approx(2, abs=0.01)


async def test_an_answer_of_a_few_kilobytes_is_waited_for_as_long_as_a_large_one(
    server: MemoryServer,
) -> None:
    await server.service.topics.append("t", b'"%s"' % (b"x" * 2 * UNSENT_BYTES))
    client = server.connect(kernel_bytes=0)
    client.get("/topics/t")
    assert await client.until_lost() == pytest.approx(2, abs=0.01)


async def hold_a_little_of_an_answer(server: MemoryServer) -> Client:
    """Return a client that has not read its answer, which is short enough for the server not to wait."""
    client = server.connect(kernel_bytes=0)
    client.get("/presence")
    await until_idle()
    assert 0 < client.transport.get_write_buffer_size() < UNSENT_BYTES
    return client


@pytest.mark.parametrize(
    ("last", "seconds"),
    [("", KEEP_ALIVE + 2), ("GET /presence HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 2)],
    ids=["idle", "closed"],
)
async def test_a_connection_that_closes_does_not_wait_for_ever_for_its_client(
    server: MemoryServer, last: str, seconds: float
) -> None:
    client = await hold_a_little_of_an_answer(server)
    if last:
        client.send(last)
    assert await client.until_lost() == pytest.approx(seconds, abs=0.01)
    assert server.service.connections.statistics().pending == 0


async def test_a_poll_is_withdrawn_when_its_client_leaves_without_reading_earlier_answers(
    server: MemoryServer,
) -> None:
    client = await hold_a_little_of_an_answer(server)
    client.get("/topics/t?wait=60")
    await until_idle()
    client.leave()
    await client.until_lost()
    await until_idle()
    assert server.service.polls.statistics().cancelled == 1


async def test_a_connection_with_unanswered_requests_ends_in_time_after_its_client_has_left(
    server: MemoryServer,
) -> None:
    client = await hold_a_little_of_an_answer(server)
    client.get("/topics/t?wait=60", times=2)
    await until_idle()
    client.leave()
    await until_idle()
    assert client.transport.is_closing()
    # The first poll is answered, but the second one will never be.
    await server.service.topics.append("t", b"1")
    assert await client.until_lost() == pytest.approx(2, abs=0.01)


async def test_a_client_that_reads_late_but_in_time_keeps_its_connection(server: MemoryServer) -> None:
    await fill_topic(server.service)
    client = server.connect()
    client.get("/topics/t", times=15)
    await asyncio.sleep(1.9)
    assert await client.statuses(15) == {200}
    await asyncio.sleep(KEEP_ALIVE - 0.1)
    client.get("/presence")
    assert await client.status() == 200


async def test_a_request_begun_while_answers_are_unread_has_to_be_finished_in_time(
    server: MemoryServer,
) -> None:
    await fill_topic(server.service)
    client = server.connect()
    client.get("/topics/t", times=15)
    client.send("GET /half")
    await asyncio.sleep(1.5)
    assert await client.statuses(14) == {200}
    await asyncio.sleep(1.5)
    assert await client.status() == 200
    # Any byte ends uvicorn's own timeout of idle connections.
    client.send("/")
    assert await client.until_lost() == pytest.approx(5, abs=0.01)


async def test_an_answer_gives_no_more_time_to_finish_the_next_request(server: MemoryServer) -> None:
    client = server.connect()
    client.get("/topics/t?wait=60")
    await until_idle()
    client.send("GET /half")
    await asyncio.sleep(1.5)
    await server.service.topics.append("t", b"1")
    assert await client.status() == 200
    assert await client.until_lost() == pytest.approx(2, abs=0.01)


async def test_with_all_polls_pending_other_clients_get_a_503_and_can_append(server: MemoryServer) -> None:
    readers = [server.connect() for _ in range(4)]
    for reader in readers:
        reader.get("/topics/t?wait=60")
    await until_idle()
    another = server.connect()
    another.get("/topics/t?wait=60")
    assert await another.status() == 503
    another.send(POST + "Content-Length: 1\r\n\r\n1")
    assert await another.status() == 201
    assert {await reader.status() for reader in readers} == {200}


async def test_a_connection_beyond_the_limit_is_closed_at_once(server: MemoryServer) -> None:
    clients = [server.connect() for _ in range(5)]
    one_more = server.connect()
    assert server.service.connections.statistics().pending == 5
    assert await one_more.until_lost() < 0.1
    clients.pop().leave()
    await until_idle()
    another = server.connect()
    another.get("/presence")
    assert await another.status() == 200
