"""The transport for Redis, on a connection that the test holds in its hands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import redis
from redis.asyncio import Redis

from purgatory.relay import Key
from purgatory.relay.texts import read
from purgatory.relay.transport import Publication
from purgatory.relay.transports.redis import RedisTransport, notify, publications


class Heard:
    """A receiver that keeps what arrives."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.arrived = asyncio.Event()

    def received(self, text: str) -> None:
        self.texts.append(text)
        self.arrived.set()

    def missed(self) -> None:
        raise AssertionError("the transport for Redis has nothing to say here")


class FakeConnection:
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
def connection() -> FakeConnection:
    return FakeConnection()


@pytest.fixture
def transport(connection: FakeConnection, monkeypatch: pytest.MonkeyPatch) -> RedisTransport:
    client = Redis()
    monkeypatch.setattr(client.connection_pool, "make_connection", lambda: connection)
    return RedisTransport(client, prefix="app")


@asynccontextmanager
async def running(transport: RedisTransport) -> AsyncIterator[Heard]:
    """The transport runs, and is cancelled at the end."""
    heard = Heard()
    async with anyio.create_task_group() as group:
        await group.start(transport.run, heard)
        yield heard
        group.cancel_scope.cancel()


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


# Subscriptions


async def test_subscribing_ends_with_the_confirmation_of_the_last_channel(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    async with running(transport):
        subscribing = asyncio.create_task(transport.subscribe(["00", "ff"]))
        await settle()
        assert connection.sent[1:] == [(b"SUBSCRIBE", b"app:00", b"app:ff")]
        connection.confirm(b"app:00")
        await settle()
        assert not subscribing.done()
        connection.confirm(b"app:ff")
        await subscribing


async def test_a_confirmation_of_an_earlier_request_does_not_count(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    async with running(transport):
        given_up = asyncio.create_task(transport.subscribe(["00"]))
        await settle()
        given_up.cancel()
        again = asyncio.create_task(transport.subscribe(["00"]))
        await settle()
        connection.confirm(b"app:00")
        await settle()
        assert not again.done()
        connection.confirm(b"app:00")
        await again


async def test_subscribing_fails_when_the_connection_is_lost_before_the_confirmation(
    transport: RedisTransport, connection: FakeConnection
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
    transport: RedisTransport, connection: FakeConnection
) -> None:
    async with running(transport):
        connection.is_connected = False
        with pytest.raises(ConnectionError, match="lost"):
            await transport.subscribe(["00"])
        with pytest.raises(ConnectionError, match="lost"):
            await transport.unsubscribe(["00"])
    assert len(connection.sent) == 1


async def test_unsubscribing_does_not_wait(transport: RedisTransport, connection: FakeConnection) -> None:
    async with running(transport):
        await transport.unsubscribe(["00", "01"])
    assert connection.sent[1:] == [(b"UNSUBSCRIBE", b"app:00", b"app:01")]


async def test_nothing_can_be_subscribed_without_a_connection(transport: RedisTransport) -> None:
    with pytest.raises(ConnectionError, match="no connection"):
        await transport.subscribe(["00"])
    assert "not connected" in repr(transport)


# What arrives


async def test_messages_are_handed_over_also_before_the_confirmation(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    async with running(transport) as heard:
        assert repr(transport) == "<RedisTransport 'app' connected>"
        connection.answers.put_nowait([b"message", b"app:00", b'{"keys":["tea"]}'])
        connection.answers.put_nowait([b"unsubscribe", b"app:00", 0])
        await heard.arrived.wait()
        assert heard.texts == ['{"keys":["tea"]}']


async def test_a_message_that_is_no_text_is_handed_over_as_no_json(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    async with running(transport) as heard:
        connection.answers.put_nowait([b"message", b"app:00", b'{"keys":["\xff"]}'])
        await heard.arrived.wait()
        assert heard.texts == ['{"keys":["\\xff"]}']


async def test_silence_is_no_error(transport: RedisTransport, connection: FakeConnection) -> None:
    async with running(transport):
        assert connection.socket_timeout is None


# What is published


async def test_all_messages_are_published_in_one_round_trip(
    transport: RedisTransport, connection: FakeConnection
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
async def test_answers_that_nobody_has_read_are_not_those_of_the_next_messages(
    transport: RedisTransport, connection: FakeConnection, end: BaseException
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
    transport: RedisTransport, connection: FakeConnection
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
    transport: RedisTransport, connection: FakeConnection
) -> None:
    for _ in range(3):
        connection.answers.put_nowait(1)
        await transport.publish([Publication("00", "a")])
    assert connection.connected == 1


async def test_closing_ends_the_connection_for_publishing(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    await transport.aclose()
    connection.answers.put_nowait(1)
    await transport.publish([Publication("00", "a")])
    await transport.aclose()
    assert not connection.is_connected


# Rights


async def test_a_right_that_is_missing_shows_when_it_connects(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    connection.answers.put_nowait(redis.exceptions.NoPermissionError("it may not run 'unsubscribe'"))
    rights = r"'unsubscribe': .* \+subscribe \+unsubscribe \+publish &app:\*"
    with pytest.RaisesGroup(pytest.RaisesExc(redis.exceptions.NoPermissionError, match=rights)):
        async with running(transport):
            await asyncio.Event().wait()
    assert connection.sent == [(b"UNSUBSCRIBE", b"app:")]


async def test_a_user_who_may_not_publish_is_told_which_rights_that_takes(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    connection.answers.put_nowait(redis.exceptions.NoPermissionError("it may not run 'publish'"))
    with pytest.raises(redis.exceptions.NoPermissionError, match=r"'publish': .* \+publish &app:\*"):
        await transport.publish([Publication("00", "a")])


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


# Connections


async def test_an_end_of_the_connection_ends_the_transport(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    connection.answers.put_nowait(redis.ConnectionError("closed by server"))
    with pytest.RaisesGroup(redis.ConnectionError):
        async with running(transport):
            await asyncio.Event().wait()
    assert not connection.is_connected


async def test_a_server_that_cannot_be_reached_is_reported(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    connection.refusal = redis.ConnectionError("refused")
    with pytest.RaisesGroup(redis.ConnectionError):
        async with running(transport):
            pass
    assert "not connected" in repr(transport)


async def test_a_cancelled_transport_closes_its_connection(
    transport: RedisTransport, connection: FakeConnection
) -> None:
    async with running(transport):
        assert connection.is_connected
    assert not connection.is_connected


# Clients


def test_a_client_that_blocks_is_refused() -> None:
    with pytest.raises(TypeError, match=r"redis\.asyncio\.Redis"):
        RedisTransport(redis.Redis())  # type: ignore[arg-type]  # the mistake under test


def test_an_address_that_is_no_url_of_redis_is_refused() -> None:
    with pytest.raises(ValueError, match="scheme"):
        RedisTransport("localhost:6379")
