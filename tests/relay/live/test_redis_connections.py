"""Each documented way to connect to Redis, and what entering a relay says when one of them fails."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import redis
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.sentinel import Sentinel

from purgatory.relay.transports.redis import RedisTransport
from tests.free_ports import free_ports
from tests.relay.live.pairs import SHORT, Served, process_on, signals_go_over, until
from tests.relay.live.servers import RedisServer, SentinelServer, self_signed
from tests.relay.processes import State

pytestmark = pytest.mark.slow

RIGHTS = ["+subscribe", "+unsubscribe", "+publish", "&purgatory:*"]


@contextmanager
def redis_user(server: RedisServer, rights: list[str]) -> Iterator[str]:
    """The URL of a user who has `rights`, and no others."""
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "app", "reset", "on", ">secret", *rights)
        try:
            yield f"redis://app:secret@127.0.0.1:{server.port}"
        finally:
            client.acl_deluser("app")


async def test_over_a_url(redis_server: RedisServer) -> None:
    url = f"{redis_server.url}/3"
    await signals_go_over(RedisTransport(url), RedisTransport(url))


async def test_over_a_client_with_a_pool_of_the_user(redis_server: RedisServer) -> None:
    async with Redis(connection_pool=ConnectionPool.from_url(redis_server.url, max_connections=1)) as client:
        await signals_go_over(RedisTransport(client), RedisTransport(client))


async def test_over_tls() -> None:
    port = free_ports(1)
    server = RedisServer(
        *("--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no"),
        *("--tls-cert-file", "certificate.pem", "--tls-key-file", "key.pem"),
        *("--tls-ca-cert-file", "certificate.pem"),
    )
    url = f"rediss://127.0.0.1:{port}?ssl_ca_certs={self_signed(server.directory)}"
    with server:
        await signals_go_over(RedisTransport(url), RedisTransport(url))


async def test_over_sentinel() -> None:
    with RedisServer() as primary, SentinelServer(primary) as sentinel_server:
        sentinel = Sentinel([("127.0.0.1", sentinel_server.port)])  # type: ignore[no-untyped-call]  # it has no types
        async with sentinel.master_for("app") as client:
            await signals_go_over(RedisTransport(client), RedisTransport(client))
        for each in sentinel.sentinels:
            await each.aclose()


async def test_over_different_nodes_of_a_cluster() -> None:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(RedisServer("--cluster-enabled", "yes", "--cluster-port", str(free_ports(1))))
            for _ in range(2)
        )
        with redis.Redis.from_url(first.url) as client:
            bus = second.options[-1]
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", second.port, bus)
            await until(lambda: client.cluster("INFO")["cluster_known_nodes"] == "2")
        with redis.Redis.from_url(second.url) as client:
            await until(lambda: client.cluster("INFO")["cluster_state"] == "ok")
        await signals_go_over(first.transport(), second.transport())


async def test_as_a_user_of_redis_who_has_the_documented_rights_and_no_others(
    redis_server: RedisServer,
) -> None:
    with redis_user(redis_server, RIGHTS) as url:
        await signals_go_over(RedisTransport(url), RedisTransport(url))


@pytest.mark.parametrize("right", RIGHTS)
async def test_a_user_of_redis_who_lacks_a_right_is_refused_on_entering(
    redis_server: RedisServer, right: str
) -> None:
    rights = [other for other in RIGHTS if other != right]
    words = re.escape(" ".join(RIGHTS))
    with (
        redis_user(redis_server, rights) as url,
        pytest.raises(redis.exceptions.NoPermissionError, match=words),
    ):
        await process_on(Served(lambda: RedisTransport(url)), State()).__aenter__()


async def test_a_relay_that_loses_the_right_to_publish_is_not_connected_and_says_why(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_user(redis_server, RIGHTS) as url:
        async with process_on(Served(lambda: RedisTransport(url)), State(), SHORT) as process:
            relay = process.relay
            with redis.Redis.from_url(redis_server.url) as client:
                client.execute_command("ACL", "SETUSER", "app", "-publish")
            await until(lambda: not relay.statistics().connected)
            generation = relay.statistics().generation
            while relay.statistics().generation < generation + 2:
                assert not relay.statistics().connected
                await asyncio.sleep(0.005)
            with redis.Redis.from_url(redis_server.url) as client:
                client.execute_command("ACL", "SETUSER", "app", "+publish")
            await until(lambda: relay.statistics().connected)
    assert "no permissions to run the 'publish' command" in caplog.text
    assert "+subscribe +unsubscribe +publish &purgatory:*" in caplog.text


async def test_tls_to_a_port_without_it_is_named_as_a_possible_cause(redis_server: RedisServer) -> None:
    url = f"rediss://127.0.0.1:{redis_server.port}"
    with pytest.raises(TimeoutError, match=r"the server has not answered: check .* TLS"):
        async with process_on(Served(lambda: RedisTransport(url)), State(), SHORT):
            pass
