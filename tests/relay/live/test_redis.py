"""What only Redis and Valkey have: two protocols, clients of the user's, and a buffer that overflows."""

from __future__ import annotations

import asyncio

import pytest
import redis
from redis.asyncio import Redis

from purgatory.relay.keys import encoded, shard_of
from purgatory.relay.transports.redis import RedisTransport, notify, publications
from tests.relay.live.pairs import Served, hears, process_on, two_processes_on, until
from tests.relay.live.servers import RedisServer
from tests.relay.processes import State

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("protocol", [2, 3])
async def test_signals_go_over_a_client_of_the_user_in_either_protocol(
    redis_or_valkey: RedisServer, protocol: int
) -> None:
    async with Redis.from_url(redis_or_valkey.url, protocol=protocol, decode_responses=True) as client:
        async with two_processes_on(Served(lambda: RedisTransport(client))):
            pass
        # No connection of its pool was needed, and it is still open.
        assert client.connection_pool._available_connections == []
        assert await client.ping()


async def test_a_signal_in_a_transaction_leaves_when_it_is_executed(redis_or_valkey: RedisServer) -> None:
    channel = f"purgatory:{shard_of(encoded('tea')):02x}"
    state = State()
    async with process_on(redis_or_valkey, state) as waiter, Redis.from_url(redis_or_valkey.url) as client:
        waiting = waiter.park("tea")
        while await client.pubsub_numsub(channel) != [(channel.encode(), 1)]:  # noqa: ASYNC110  # it is Redis that knows
            await asyncio.sleep(0.005)
        async with client.pipeline() as discarded:
            notify(discarded, "tea")
        async with client.pipeline() as pipeline:
            await pipeline.watch("tea")
            pipeline.multi()  # type: ignore[no-untyped-call]  # redis-py gives it no type
            notify(pipeline, "tea")
            state["tea"] += 1
            await pipeline.execute()
        await waiting
        await until(lambda: waiter.relay.statistics().arrived)
        assert waiter.relay.statistics().arrived == 1


async def test_a_script_signals_what_it_writes(redis_or_valkey: RedisServer) -> None:
    script = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('PUBLISH', ARGV[2], ARGV[3])"
    (publication,) = publications("tea")
    state = State()
    async with process_on(redis_or_valkey, state) as waiter, Redis.from_url(redis_or_valkey.url) as client:
        waiting = waiter.park("tea")
        while await client.pubsub_numsub(publication[0]) != [(publication[0], 1)]:  # noqa: ASYNC110  # it is Redis that knows
            await asyncio.sleep(0.005)
        state["tea"] += 1
        assert await client.register_script(script)(keys=["tea"], args=["hot", *publication]) == 1
        await waiting
        assert await client.get("tea") == b"hot"
        assert waiter.relay.statistics().arrived == 1
        await client.delete("tea")


async def test_an_output_buffer_that_overflows_loses_no_write(redis_or_valkey: RedisServer) -> None:
    async with two_processes_on(redis_or_valkey) as pair:
        waiting = pair.waiter.park("tea", pair.state["tea"] + 1)
        generation = pair.waiter.relay.statistics().generation
        pair.state["tea"] += 1
        redis_or_valkey.overflow(40)
        await waiting
        await until(lambda: pair.waiter.relay.statistics().generation > generation)
        await hears(pair)


async def test_neither_a_flush_nor_a_full_memory_takes_anything_from_a_relay(
    redis_or_valkey: RedisServer,
) -> None:
    async with two_processes_on(redis_or_valkey) as pair:
        with redis.Redis.from_url(redis_or_valkey.url) as client:
            assert client.dbsize() == 0
            client.flushall()
            client.config_set("maxmemory", 1)
            try:
                with pytest.raises(redis.OutOfMemoryError):
                    client.set("tea", 1)
                await hears(pair)
            finally:
                client.config_set("maxmemory", 0)
        assert pair.waiter.relay.statistics().gaps == 0
