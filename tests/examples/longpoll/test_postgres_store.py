"""The store that several workers share, in a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from examples.longpoll import postgres_store
from examples.longpoll.postgres_store import PostgresStore
from examples.longpoll.store import KEPT, NOWHERE, TOPICS, StoreUnavailable, TooManyTopics
from purgatory.web import Position
from tests.examples.longpoll.conftest import Worker
from tests.relay.live.servers import PostgresServer

pytestmark = [pytest.mark.long, pytest.mark.real_time]


async def empty(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await connection.close()


@pytest_asyncio.fixture
async def store(server: PostgresServer) -> AsyncIterator[PostgresStore]:
    await empty(server)
    async with PostgresStore(server.url) as store:
        yield store


async def test_records_have_consecutive_offsets_also_of_several_writers(
    store: PostgresStore, server: PostgresServer
) -> None:
    async with PostgresStore(server.url) as other:
        offsets = await asyncio.gather(*(each.append("t", b"{}") for each in [store, other] * 20))
    assert sorted(offsets) == list(range(40))


async def test_what_follows_a_position_is_read_in_several_topics_at_once(store: PostgresStore) -> None:
    for number in range(3):
        await store.append("a", b"%d" % number)
    await store.append("b", b"0")
    whole = await store.read({"a": NOWHERE, "b": NOWHERE, "none": NOWHERE})
    assert {topic: (each.offset, each.records) for topic, each in whole.items()} == {
        "a": (0, [b"0", b"1", b"2"]),
        "b": (0, [b"0"]),
    }
    log = whole["a"].log
    rest = await store.read({"a": Position(log, 2), "b": Position(whole["b"].log, 1)})
    assert {topic: (each.offset, each.records) for topic, each in rest.items()} == {"a": (2, [b"2"])}
    elsewhere = await store.read({"a": Position("another", 2)})
    assert elsewhere == {"a": whole["a"]}


async def test_the_oldest_records_are_dropped(store: PostgresStore) -> None:
    for number in range(KEPT + 3):
        assert await store.append("t", b"%d" % number) == number
    excerpt = (await store.read({"t": NOWHERE}))["t"]
    assert (excerpt.offset, len(excerpt.records), excerpt.records[0]) == (3, KEPT, b"3")


async def test_a_topic_too_many_is_refused(store: PostgresStore) -> None:
    for number in range(TOPICS):
        await store.append(f"t{number}", b"{}")
    with pytest.raises(TooManyTopics):
        await store.append("more", b"{}")
    assert await store.append("t0", b"{}") == 1


async def test_a_store_that_was_emptied_has_another_log(store: PostgresStore, server: PostgresServer) -> None:
    await store.append("t", b"old")
    before = (await store.read({"t": NOWHERE}))["t"]
    await empty(server)
    async with PostgresStore(server.url) as again:
        await again.append("t", b"new")
        after = (await again.read({"t": Position(before.log, 1)}))["t"]
    assert after.log != before.log
    assert (after.offset, after.records) == (0, [b"new"])


async def test_a_session_lasts_until_its_timeout_or_a_farewell(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "SESSION_TIMEOUT", 0.2)
    assert await store.heartbeat("ada")
    while await store.online():  # noqa: ASYNC110  # it is the server's clock that ends a session
        await asyncio.sleep(0.01)
    monkeypatch.undo()
    assert await store.heartbeat("ada")
    assert not await store.heartbeat("ada")
    assert await store.heartbeat("bob")
    assert sorted(await store.online()) == ["ada", "bob"]
    await store.leave("bob")
    assert await store.online() == ["ada"]


async def test_a_change_in_one_worker_answers_the_polls_in_another(
    store: PostgresStore, server: PostgresServer
) -> None:
    first, second = Worker(PostgresStore(server.url)), Worker(PostgresStore(server.url))
    async with first.service.running(), second.service.running(), first.client, second.client:
        poll = await second.poll("/topics/t?wait=25")
        await first.say("t", "news")
        answer = (await asyncio.wait_for(poll, 20)).json()
        assert [record["text"] for record in answer["records"]] == ["news"]
        people = (await second.client.get("/topics/t?people=")).json()["people"]["version"]
        poll = await second.poll(f"/topics/t?after={answer['after']}&people={people}&wait=25")
        await first.client.post("/presence/ada")
        assert (await asyncio.wait_for(poll, 20)).json()["people"]["names"] == ["ada"]


async def test_a_server_that_has_gone_is_reported(store: PostgresStore, server: PostgresServer) -> None:
    server.kill()
    try:
        with pytest.raises(StoreUnavailable):
            await store.append("t", b"{}")
        with pytest.raises(StoreUnavailable):
            await store.read({"t": NOWHERE})
    finally:
        server.start()
