"""The transport for Redis, on a connection that the test holds in its hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import redis
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.sentinel import Sentinel

from purgatory.relay import Key
from purgatory.relay.texts import read
from purgatory.relay.transport import Publication
from purgatory.relay.transports.redis import RedisTransport, notify, publications
from tests.relay.transports.heard import running


class FakeRedis:
    """A connection of redis-py. The test plays the server: it puts answers, or an error, into a queue."""

    def __init__(self) -> None:
        self.is_connected = False
        self.socket_timeout: float | None = 5.0
        self.sent: list[tuple[Any, ...]] = []
        self.answers: asyncio.Queue[Any] = asyncio.Queue()
        self.refusal: Exception | None = None
        self.connected = 0

    async def connect(self) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.is_connected = True
        self.connected += 1

    async def send_command(self, *command: bytes, check_health: bool) -> None:
        assert self.is_connected
        assert not check_health
        self.sent.append(command)

    async def read_response(self, *, disable_decoding: bool = False, push_request: bool = False) -> Any:
        # Messages are bytes, and RESP3 pushes them. Answers are neither.
        subscribed = all(command[0] != b"PUBLISH" for command in self.sent)
        assert (disable_decoding, push_request) == (subscribed, subscribed)
        answer = await self.answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def pack_commands(self, commands: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return commands

    async def send_packed_command(self, commands: list[tuple[Any, ...]]) -> None:
        # redis-py would connect to localhost, and not to the primary that Sentinel names.
        assert self.is_connected
        self.sent += commands

    async def disconnect(self, *, nowait: bool) -> None:
        assert nowait
        self.is_connected = False

    def confirm(self, *channels: bytes) -> None:
        for number, channel in enumerate(channels, start=1):
            self.answers.put_nowait([b"subscribe", channel, number])


@pytest.fixture
def connection() -> FakeRedis:
    return FakeRedis()


@pytest.fixture
def transport(connection: FakeRedis, monkeypatch: pytest.MonkeyPatch) -> RedisTransport:
    client = Redis()
    monkeypatch.setattr(client.connection_pool, "make_connection", lambda: connection)
    return RedisTransport(client, prefix="app")


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


# Subscriptions


async def test_subscribing_ends_with_the_confirmation_of_its_last_channel(
    transport: RedisTransport, connection: FakeRedis
) -> None:
    async with running(transport):
        given_up = asyncio.create_task(transport.subscribe(["00"]))
        await settle()
        given_up.cancel()
        subscribing = asyncio.create_task(transport.subscribe(["00", "ff"]))
        await settle()
        assert connection.sent[2:] == [(b"SUBSCRIBE", b"app:00", b"app:ff")]
        # The first one is for the request that was given up.
        for channel in (b"app:00", b"app:00"):
            connection.confirm(channel)
            await settle()
            assert not subscribing.done()
        connection.confirm(b"app:ff")
        await subscribing


async def test_subscribing_fails_when_the_connection_is_lost_before_the_confirmation(
    transport: RedisTransport, connection: FakeRedis
) -> None:
    with pytest.RaisesGroup(redis.ConnectionError):
        async with running(transport):
            subscribing = asyncio.create_task(transport.subscribe(["00"]))
            await settle()
            connection.answers.put_nowait(redis.ConnectionError("closed by server"))
            await asyncio.Event().wait()
    with pytest.raises(ConnectionError, match="was lost"):
        await subscribing


async def test_a_lost_connection_is_not_opened_again_by_a_request(
    transport: RedisTransport, connection: FakeRedis
) -> None:
    async with running(transport):
        connection.is_connected = False
        with pytest.raises(ConnectionError, match="lost"):
            await transport.subscribe(["00"])
        with pytest.raises(ConnectionError, match="lost"):
            await transport.unsubscribe(["00"])
    assert len(connection.sent) == 1


# What arrives


async def test_a_message_that_is_no_text_is_handed_over_as_no_json(
    transport: RedisTransport, connection: FakeRedis
) -> None:
    async with running(transport) as heard:
        connection.answers.put_nowait([b"message", b"app:00", b'{"keys":["\xff"]}'])
        await heard.change()
        assert heard.texts == ['{"keys":["\\xff"]}']


async def test_silence_is_no_error(transport: RedisTransport, connection: FakeRedis) -> None:
    async with running(transport):
        assert connection.socket_timeout is None


# What is published


async def test_all_publications_go_out_in_one_round_trip(
    transport: RedisTransport, connection: FakeRedis
) -> None:
    publishing = asyncio.create_task(transport.publish([Publication("00", "a"), Publication("01", "b")]))
    await settle()
    assert connection.sent == [(b"PUBLISH", b"app:00", "a"), (b"PUBLISH", b"app:01", "b")]
    connection.answers.put_nowait(1)
    await settle()
    assert not publishing.done()
    connection.answers.put_nowait(0)
    await publishing
    assert connection.is_connected


@pytest.mark.parametrize("end", [redis.ResponseError("no script"), asyncio.CancelledError()])
async def test_answers_that_nobody_has_read_are_not_taken_for_those_of_the_next_publications(
    transport: RedisTransport, connection: FakeRedis, end: BaseException
) -> None:
    connection.answers.put_nowait(end)
    with pytest.raises(type(end)):
        await transport.publish([Publication("00", "a"), Publication("01", "b")])
    # So the next publications go over a new connection.
    assert not connection.is_connected
    connection.answers.put_nowait(1)
    await transport.publish([Publication("00", "c")])
    assert connection.is_connected


async def test_a_primary_that_sentinel_cannot_name_yet_is_asked_for_again(
    transport: RedisTransport, connection: FakeRedis
) -> None:
    connection.refusal = redis.ConnectionError("no primary")
    with pytest.raises(redis.ConnectionError, match="no primary"):
        await transport.publish([Publication("00", "a")])
    assert connection.sent == []
    connection.refusal = None
    connection.answers.put_nowait(1)
    await transport.publish([Publication("00", "b")])
    assert connection.sent == [(b"PUBLISH", b"app:00", "b")]


async def test_the_connection_for_publishing_is_kept(
    transport: RedisTransport, connection: FakeRedis
) -> None:
    for _ in range(3):
        connection.answers.put_nowait(1)
        await transport.publish([Publication("00", "a")])
    assert connection.connected == 1


# In the transaction of the caller

PIPELINES: dict[str, Callable[[], Any]] = {
    "asyncio": lambda: Redis().pipeline(),
    "blocking": lambda: redis.Redis().pipeline(),
}


@pytest.fixture(params=PIPELINES)
def pipeline(request: pytest.FixtureRequest) -> Any:
    return PIPELINES[request.param]()


def published(pipeline: Any) -> list[tuple[bytes, list[Key], int | None]]:
    """The channels, and the keys or the shard that are signalled there."""
    commands = [command for command, _ in pipeline.command_stack]
    assert {command[0] for command in commands} <= {"PUBLISH"}
    arrivals = [(channel, read(text)) for _, channel, text in commands]
    return [(channel, arrival.keys, arrival.shard) for channel, arrival in arrivals]


def test_a_key_is_signalled_on_the_channel_of_its_shard(pipeline: Any) -> None:
    # The documentation has this example.
    notify(pipeline, ("job", 3), prefix="app")
    assert published(pipeline) == [(b"app:6f", [("job", 3)], None)]


def test_the_keys_of_a_shard_are_signalled_together(pipeline: Any) -> None:
    keys = [f"key {number}" for number in range(1_000)]
    notify(pipeline, *keys)
    sent = published(pipeline)
    assert len({channel for channel, _, _ in sent}) == len(sent) <= 256
    assert sorted(key for _, signalled, _ in sent for key in signalled) == sorted(keys)


def test_a_key_that_is_longer_than_a_message_is_signalled_by_its_shard(pipeline: Any) -> None:
    notify(pipeline, "a" * 40_000)
    ((channel, keys, shard),) = published(pipeline)
    assert (channel, keys) == (b"purgatory:%02x" % (shard or 0), [])


def test_a_script_gets_the_channel_and_the_text_of_a_key() -> None:
    # The documentation has this example, too.
    assert publications(("job", 3), prefix="app") == [(b"app:6f", '{"from":"","keys":[["job",3]]}')]


def test_no_key_is_signalled_when_one_has_no_encoding(pipeline: Any) -> None:
    with pytest.raises(TypeError, match="float"):
        notify(pipeline, "tea", 1.5)  # type: ignore[arg-type]  # the mistake under test
    assert published(pipeline) == []


def test_a_signal_between_watch_and_multi_is_refused(pipeline: Any) -> None:
    pipeline.watching = True
    with pytest.raises(RuntimeError, match="after multi"):
        notify(pipeline, "tea")
    pipeline.multi()
    notify(pipeline, "tea")
    assert len(published(pipeline)) == 1


@pytest.mark.parametrize("client", [Redis(), redis.Redis()])
def test_a_client_in_place_of_its_pipeline_is_refused(client: Any) -> None:
    with pytest.raises(TypeError, match=r"pipeline of redis-py, not Redis: pass client\.pipeline\(\)"):
        notify(client, "tea")


# Clients


def test_a_client_of_the_replicas_of_sentinel_is_refused() -> None:
    sentinel = Sentinel([("localhost", 26379)])  # type: ignore[no-untyped-call]  # it has no types
    with pytest.raises(ValueError, match="pass master_for"):
        RedisTransport(sentinel.slave_for("app"))


def test_a_client_of_a_whole_cluster_is_refused() -> None:
    cluster = RedisCluster.from_url("redis://localhost")
    with pytest.raises(TypeError, match=r"not redis\.asyncio\.cluster\.RedisCluster: .* of one node"):
        RedisTransport(cluster)  # type: ignore[arg-type]  # the mistake under test


def test_a_client_that_blocks_is_refused() -> None:
    with pytest.raises(TypeError, match=r"redis\.asyncio\.Redis, not redis\.client\.Redis"):
        RedisTransport(redis.Redis())  # type: ignore[arg-type]  # the mistake under test


def test_an_address_that_is_no_url_of_redis_is_refused() -> None:
    with pytest.raises(ValueError, match="scheme"):
        RedisTransport("localhost:6379")
