"""A primary that dies, and a replica that takes its place."""

from __future__ import annotations

import asyncio

import pytest
import redis
from redis.asyncio.sentinel import Sentinel

from purgatory.relay.transports.redis import RedisTransport
from tests.relay.live.pairs import Served, hears, two_processes_on, until
from tests.relay.live.servers import RedisServer, SentinelServer

pytestmark = pytest.mark.slow


async def test_a_write_during_a_failover_is_seen_and_the_new_primary_carries_signals(
    redis_or_valkey: RedisServer,
) -> None:
    kind = type(redis_or_valkey)
    with kind() as primary, kind("--replicaof", "127.0.0.1", str(primary.port)) as replica:
        with redis.Redis.from_url(replica.url) as client:
            await until(lambda: client.info("replication")["master_link_status"] == "up")
        with SentinelServer(primary) as sentinel_server:
            with redis.Redis(port=sentinel_server.port) as client:
                await until(lambda: client.sentinel_slaves("app"))
            sentinel = Sentinel([("127.0.0.1", sentinel_server.port)])  # type: ignore[no-untyped-call]  # has no types
            async with sentinel.master_for("app") as client_of_primary:
                async with two_processes_on(Served(lambda: RedisTransport(client_of_primary))) as pair:
                    waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
                    primary.kill()
                    await until(lambda: not pair.waiter.relay.statistics().connected)
                    pair.writer.write("tea")
                    await asyncio.wait_for(waiting, 30)
                    await hears(pair)
                with redis.Redis.from_url(replica.url) as client:
                    assert client.role()[0] == b"master"
            for each in sentinel.sentinels:
                await each.aclose()
