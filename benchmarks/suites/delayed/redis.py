"""A sorted set of Redis."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from benchmarks.suites.delayed.store import AT_A_LOOK, Polled


class Redis(Polled):
    """A sorted set of due times and a hash of payloads, over one connection on which commands do not wait."""

    name = "Redis, appendfsync always"
    available = shutil.which("redis-server") is not None
    fsync = "always"

    async def open(self) -> None:
        socket = self.directory / "socket"
        with suppress(FileNotFoundError):
            socket.unlink()
        options = {"port": 0, "unixsocket": socket, "dir": self.directory, "save": "", "appendonly": "yes"}
        command = ["redis-server"]
        for name, value in (options | {"appendfsync": self.fsync}).items():
            command += [f"--{name}", str(value)]
        self._server = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.DEVNULL)
        self.process_ids.append(self._server.pid)
        while True:
            with suppress(OSError):
                self._reader, self._writer = await asyncio.open_unix_connection(socket)
                break
            await asyncio.sleep(0.002)
        self._answers: deque[asyncio.Future[Any]] = deque()
        self._reading = asyncio.create_task(self._read())
        # It may load its file yet.
        while isinstance(await self._send([b"PING"]), Exception):  # noqa: ASYNC110  # Redis tells nobody
            await asyncio.sleep(0.002)
        self._numbers = itertools.count(time.time_ns())

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        self._server.terminate()
        await asyncio.to_thread(self._server.wait)

    async def _send(self, *commands: Sequence[bytes]) -> Any:
        """The answer to the last one."""
        for words in commands:
            self._writer.write(
                b"*%d\r\n%b" % (len(words), b"".join(b"$%d\r\n%b\r\n" % (len(each), each) for each in words))
            )
            answer = asyncio.get_running_loop().create_future()
            self._answers.append(answer)
        return await answer

    async def _read(self) -> None:
        while True:
            answer = await self._parse()
            future = self._answers.popleft()
            if not future.done():
                future.set_result(answer)

    async def _parse(self) -> Any:
        line = await self._reader.readuntil(b"\r\n")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return None if rest == b"-1" else (await self._reader.readexactly(int(rest) + 2))[:-2]
        if kind == b"*":
            return [await self._parse() for _ in range(int(rest))]
        if kind == b":":
            return int(rest)
        return RuntimeError(rest.decode()) if kind == b"-" else rest

    async def schedule(self, payload: bytes, at: float) -> bytes:
        id, due = b"%x" % next(self._numbers), repr(at).encode()
        await self._send(
            [b"MULTI"], [b"HSET", b"payloads", id, payload], [b"ZADD", b"dues", due, id], [b"EXEC"]
        )
        return id

    async def cancel(self, receipt: bytes) -> bool:
        commands = [b"MULTI"], [b"ZREM", b"dues", receipt], [b"HDEL", b"payloads", receipt], [b"EXEC"]
        removed: list[int] = await self._send(*commands)
        return removed[0] == 1

    async def due(self, now: float) -> list[tuple[Any, float, bytes]]:
        limit = [b"LIMIT", b"0", b"%d" % AT_A_LOOK]
        until = [b"-inf", repr(now).encode(), b"WITHSCORES"]
        found = await self._send([b"ZRANGEBYSCORE", b"dues", *until, *limit])
        ids, dues = found[::2], map(float, found[1::2])
        payloads = await self._send([b"HMGET", b"payloads", *ids]) if ids else []
        return list(zip(ids, dues, payloads, strict=True))

    async def delete(self, ids: list[bytes]) -> None:
        await self._send([b"MULTI"], [b"ZREM", b"dues", *ids], [b"HDEL", b"payloads", *ids], [b"EXEC"])


class LaxRedis(Redis):
    """It loses the last second in a crash of the machine."""

    name = "Redis, appendfsync everysec"
    fsync = "everysec"
