"""What NOTIFY costs PostgreSQL: its commits with NOTIFY and without, and what each listener adds."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, benchmark, percentiles, spreads
from benchmarks.harness.event_loop import run
from purgatory.relay.texts import signal_text

# Connections that commit, each one transaction after the other.
WRITERS = 10
LISTENERS = (1, 10, 100)
# Debian does not put them on the path.
PATH = os.pathsep.join([os.environ["PATH"], *sorted(glob("/usr/lib/postgresql/*/bin"))])

WRITE = "INSERT INTO writes VALUES (1);"
NOTIFY = f"SELECT pg_notify('signals', '{signal_text([('job', 3)])}');"


@benchmark("relay-notify", "NOTIFY in {n:,} transactions", (1_000,), (10_000,), time_limit=120.0)
def relay_notify(setting: Setting) -> Parts:
    """The first size is the number of transactions."""
    yield Table(
        "Transactions of PostgreSQL, with a signal in each",
        spreads(per_second="per second", p50_ms="p50, ms", p99_ms="p99, ms"),
        f"{WRITERS} connections commit, and each commit waits for the disk. The rate is that until every "
        "listener has heard every signal. This process writes and listens, on connections of their own.",
    )
    transactions = setting.sizes[0]
    for section, text, listeners in [
        ("a row is written", WRITE, (0, *LISTENERS)),
        ("nothing is written", "", LISTENERS),
    ]:
        for count in listeners:
            name = f"NOTIFY, {count} listening" if count else "without NOTIFY"
            measured = partial(measure, text + NOTIFY * bool(count), count, transactions)
            yield Case(section, name, partial(run, setting.loop, measured))


async def measure(statements: str, listeners: int, transactions: int) -> Sample:
    expected = listeners * transactions
    heard = 0
    all_heard = asyncio.Event()

    def hear(*_: object) -> None:
        nonlocal heard
        heard += 1
        if heard == expected:
            all_heard.set()

    async with AsyncExitStack() as stack:
        address = stack.enter_context(postgres())
        writers = [await stack.enter_async_context(connected(address)) for _ in range(WRITERS)]
        await writers[0].execute("CREATE TABLE writes (n int)")
        for _ in range(listeners):
            listener = await stack.enter_async_context(connected(address))
            await listener.add_listener("signals", hear)
        milliseconds: list[float] = []
        start = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(WRITERS):
                count = len(range(number, transactions, WRITERS))
                group.create_task(commit(writers[number], statements, count, milliseconds))
        if listeners:
            await all_heard.wait()
        seconds = time.perf_counter() - start
    return {"per_second": transactions / seconds, **percentiles(milliseconds)}


async def commit(
    connection: asyncpg.Connection[asyncpg.Record], statements: str, count: int, milliseconds: list[float]
) -> None:
    for _ in range(count):
        start = time.perf_counter()
        # Several statements in one text are one transaction.
        await connection.execute(statements)
        milliseconds.append((time.perf_counter() - start) * 1e3)


@asynccontextmanager
async def connected(address: Path) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    async with asyncio.timeout(30):
        while True:
            # It may not have started yet.
            with suppress(OSError, asyncpg.CannotConnectNowError):
                connection = await asyncpg.connect(host=str(address), user="postgres", database="postgres")
                break
            await asyncio.sleep(0.01)
    try:
        yield connection
    finally:
        await connection.close()


@contextmanager
def postgres() -> Iterator[Path]:
    """A server with the usual settings, on a socket in a directory. RuntimeError where there is none."""
    initdb, server = shutil.which("initdb", path=PATH), shutil.which("postgres", path=PATH)
    if initdb is None or server is None:
        raise RuntimeError("there is no PostgreSQL: apt-get install postgresql")
    # It refuses to run as root.
    user: dict[str, Any] = {} if os.geteuid() else {"user": "postgres", "group": "postgres"}
    with tempfile.TemporaryDirectory(prefix="purgatory-") as name:
        directory = Path(name)
        if user:
            shutil.chown(directory, **user)
        data = directory / "data"
        create = [initdb, "--pgdata", str(data), "--username", "postgres", "--auth", "trust", "--no-sync"]
        subprocess.run(create, check=True, cwd=directory, stdout=subprocess.DEVNULL, **user)
        settings = ("listen_addresses=", f"unix_socket_directories={directory}", "max_connections=200")
        command = [server, "-D", str(data), *(part for each in settings for part in ("-c", each))]
        with subprocess.Popen(command, cwd=directory, stderr=subprocess.DEVNULL, **user) as process:
            try:
                yield directory
            finally:
                process.terminate()
