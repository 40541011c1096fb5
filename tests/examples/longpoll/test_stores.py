"""The stores that several processes share, in real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import asyncpg
import pytest
import pytest_asyncio
from redis.asyncio import Redis

from examples.longpoll.limits import Limits
from examples.longpoll.postgres_store import PostgresStore
from examples.longpoll.redis_store import RedisStore
from examples.longpoll.store import Excerpt, Store, StoreUnavailable
from examples.longpoll.topic_log import NOWHERE, TopicLog
from examples.longpoll.topics import TooManyTopics
from purgatory import PurgatoryFull
from purgatory.web import Position
from tests.relay.live.servers import PostgresServer, RedisServer, TransportServer

pytestmark = [pytest.mark.long, pytest.mark.real_time]

LIMITS = Limits(topics=2, log_records=5, log_bytes=60, sessions=2, session_timeout=0.2)


@pytest.fixture(scope="module", params=[RedisServer, PostgresServer])
def server(request: pytest.FixtureRequest) -> Iterator[TransportServer]:
    with request.param() as server:
        yield server


MakeStore = Callable[[], Store]


@pytest.fixture
def make_store(server: TransportServer) -> MakeStore:
    if isinstance(server, RedisServer):
        return lambda: RedisStore(server.url, LIMITS)
    return lambda: PostgresStore(server.url, LIMITS)


async def empty(server: TransportServer) -> None:
    if isinstance(server, RedisServer):
        async with Redis.from_url(server.url) as client:
            await client.flushall()
    else:
        connection = await asyncpg.connect(server.url)
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        await connection.close()


@pytest_asyncio.fixture
async def store(server: TransportServer, make_store: MakeStore) -> AsyncIterator[Store]:
    await empty(server)
    async with make_store() as store:
        yield store


async def read(store: Store, topic: str, position: Position = NOWHERE) -> Excerpt:
    (excerpt,) = await store.read({topic: position})
    return excerpt


async def test_records_have_consecutive_offsets_also_of_several_writers(
    store: Store, make_store: MakeStore
) -> None:
    async with make_store() as other:
        writers = [store, other] * 20
        offsets = await asyncio.gather(*(each.append("t", b"1") for each in writers))
    assert sorted(offsets) == list(range(40))


async def test_what_follows_a_place_is_read(store: Store) -> None:
    for record in (b"0", b"1", b"2"):
        await store.append("t", record)
    whole = await read(store, "t")
    assert (whole.offset, whole.records) == (0, [b"0", b"1", b"2"])
    rest = await read(store, "t", Position(whole.log, 2))
    assert (rest.offset, rest.records) == (2, [b"2"])
    nothing = await read(store, "t", Position(whole.log, 3))
    assert (nothing.offset, nothing.records) == (3, [])
    elsewhere = await read(store, "t", Position("another", 2))
    assert (elsewhere.offset, elsewhere.records) == (0, [b"0", b"1", b"2"])


async def test_several_topics_are_read_at_once(store: Store) -> None:
    await store.append("a", b"1")
    excerpts = await store.read({"a": NOWHERE, "b": NOWHERE})
    assert {each.topic: list(each.records) for each in excerpts} == {"a": [b"1"], "b": []}
    assert len({each.log for each in excerpts}) == 1


async def test_the_oldest_records_are_dropped_as_in_the_memory_of_a_process(store: Store) -> None:
    expected = TopicLog("t", "log", LIMITS)
    for size in (1, 30, 20, 9, 2, 1, 1, 1, 1, 1, 50, 3):
        assert await store.append("t", b"x" * size) == expected.append(b"x" * size)
        excerpt = await read(store, "t")
        assert (excerpt.offset, len(excerpt.records)) == (expected.start, expected.end - expected.start)


async def test_one_topic_too_many_is_refused(store: Store) -> None:
    await store.append("a", b"1")
    await store.append("b", b"1")
    with pytest.raises(TooManyTopics, match="there are 2 topics already"):
        await store.append("c", b"1")
    assert await store.append("a", b"2") == 1
    assert sorted(await store.topics()) == ["a", "b"]


async def test_a_new_topic_takes_the_place_of_one_that_is_not_used(
    store: Store, server: TransportServer
) -> None:
    limits = replace(LIMITS, topic_timeout=1.0)
    async with type(store)(server.url, limits) as store:  # type: ignore[call-arg]  # both kinds take these
        await store.append("a", b"1")
        await store.append("a", b"2")
        await store.append("b", b"1")
        old = await read(store, "a")
        while True:
            # The time is that of the server's clock.
            await asyncio.sleep(0.02)
            await read(store, "b")
            with suppress(TooManyTopics):
                offset = await store.append("c", b"1")
                break
        # Behind the end of the old topic.
        assert offset == 3
        assert sorted(await store.topics()) == ["b", "c"]
        gone = await read(store, "a", Position(old.log, 2))
        assert (gone.offset, gone.records) == (offset, [])
        with pytest.raises(TooManyTopics):
            await store.append("a", b"1")
        while True:
            await asyncio.sleep(0.02)
            await read(store, "c")
            with suppress(TooManyTopics):
                again = await store.append("a", b"1")
                break
        assert again == 3
        excerpt = await read(store, "a", Position(old.log, 2))
        assert (excerpt.offset, excerpt.records) == (3, [b"1"])


async def test_a_store_that_was_emptied_has_another_log(store: Store, server: TransportServer) -> None:
    await store.append("t", b"1")
    before = await read(store, "t")
    await empty(server)
    async with type(store)(server.url, LIMITS) as again:  # type: ignore[call-arg]  # both kinds take these
        after = await read(again, "t", Position(before.log, 1))
    assert after.log != before.log
    assert (after.offset, after.records) == (0, [])


async def test_a_session_lasts_until_its_timeout_or_a_farewell(store: Store) -> None:
    assert await store.heartbeat("ada")
    assert not await store.heartbeat("ada")
    assert await store.heartbeat("bob")
    with pytest.raises(PurgatoryFull, match="2 sessions"):
        await store.heartbeat("cyd")
    assert sorted(await store.online()) == ["ada", "bob"]
    assert await store.leave("bob")
    assert not await store.leave("bob")
    while await store.online():  # noqa: ASYNC110  # it is the server's clock that ends a session
        await asyncio.sleep(0.01)
    assert await store.heartbeat("ada")


async def test_a_server_that_has_gone_is_reported(make_store: MakeStore, server: TransportServer) -> None:
    async with make_store() as store:
        server.kill()
        try:
            with pytest.raises(StoreUnavailable):
                await store.append("t", b"1")
            with pytest.raises(StoreUnavailable):
                await store.__aenter__()
        finally:
            server.start()
