"""A sorted set of Redis."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import subprocess
import time
from contextlib import suppress
from typing import Any

from redis.asyncio import Redis as Client
from redis.exceptions import ConnectionError

from benchmarks.suites.delayed.store import AT_A_LOOK, Polled


class Redis(Polled):
    """A sorted set of due times and a hash of payloads, by redis-py."""

    name = "Redis, appendfsync always"
    available = shutil.which("redis-server") is not None

    async def open(self) -> None:
        socket = str(self.directory / "socket")
        options = {"port": 0, "unixsocket": socket, "dir": self.directory, "save": ""}
        command = ["redis-server"]
        for name, value in (options | {"appendonly": "yes", "appendfsync": "always"}).items():
            command += [f"--{name}", str(value)]
        self._server = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.DEVNULL)
        self.process_ids.append(self._server.pid)
        self._client = Client(unix_socket_path=socket)
        while True:
            with suppress(ConnectionError):
                await self._client.ping()
                break
            await asyncio.sleep(0.002)
        self._numbers = itertools.count(time.time_ns())

    async def close(self) -> None:
        await self._client.aclose()
        self._server.terminate()
        await asyncio.to_thread(self._server.wait)

    async def schedule(self, payload: bytes, at: float) -> bytes:
        id = b"%x" % next(self._numbers)
        pipeline: Any = self._client.pipeline()
        await pipeline.hset("payloads", id, payload).zadd("dues", {id: at}).execute()
        return id

    async def cancel(self, receipt: bytes) -> bool:
        return await self.delete([receipt]) == 1

    async def due(self, now: float) -> list[tuple[Any, float, bytes]]:
        client: Any = self._client
        found = await client.zrangebyscore("dues", "-inf", now, 0, AT_A_LOOK, withscores=True)
        payloads = await client.hmget("payloads", [id for id, _ in found]) if found else []
        return [(id, due, payload) for (id, due), payload in zip(found, payloads, strict=True)]

    async def delete(self, ids: list[bytes]) -> int:
        pipeline: Any = self._client.pipeline()
        removed, _ = await pipeline.zrem("dues", *ids).hdel("payloads", *ids).execute()
        return int(removed)
