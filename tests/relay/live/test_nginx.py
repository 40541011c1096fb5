"""The deployment of the documentation: nginx in front of two workers, and Redis behind them."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from redis.asyncio import Redis

from purgatory.relay.keys import encoded, shard_of
from tests.docs.programs import DOCS, programs_of
from tests.free_ports import free_ports
from tests.relay.live.servers import RedisServer, Server, program

pytestmark = pytest.mark.long

PAGE = DOCS / "several-processes.md"
JOBS = [f"job-{number}" for number in range(20)]
# Seconds within which everything has to happen. Polls expire after 25, and must not do so here.
SOON = 20

# The program of the page keeps its table in memory. Two processes need one that they share.
WORKER = """
import os

import jobs
import redis


class Table:
    client = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)

    def get(self, job):
        return self.client.get(job)

    def __setitem__(self, job, result):
        self.client.set(job, result)


jobs.stored = Table()
production = jobs.production
"""


def blocks(language: str) -> list[str]:
    """The code blocks of the page in a language."""
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def write_modules(directory: Path) -> None:
    (application,) = (each.code for each in programs_of(PAGE) if "def application(" in each.code)
    (production,) = (each for each in blocks("{code-block} python") if "def production(" in each)
    imports = "import os\nfrom purgatory.relay.transports.redis import RedisTransport\n"
    (directory / "jobs.py").write_text(application + imports + production)
    (directory / "worker.py").write_text(WORKER)


@contextmanager
def worker(directory: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "uvicorn", "--factory", "worker:production", "--port", str(port)]
    command += ["--timeout-graceful-shutdown", "5"]
    with subprocess.Popen(
        command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            lines = []
            while "Application startup complete" not in (line := process.stderr.readline()):
                lines.append(line)
                assert line, "".join(lines)
            yield process
        finally:
            process.kill()


class Nginx(Server):
    """nginx with the configuration of the page, on other ports."""

    ready = "start worker process "

    def __init__(self, workers: Sequence[int]) -> None:
        super().__init__()
        site, limits = blocks("nginx")
        for documented, port in zip(("127.0.0.1:8001", "127.0.0.1:8002"), workers, strict=True):
            assert documented in site
            site = site.replace(documented, f"127.0.0.1:{port}")
        assert "listen 80;" in site
        site = site.replace("listen 80;", f"listen 127.0.0.1:{self.port};")
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {kind};\n" for kind in kinds)
        configuration = self.directory / "nginx.conf"
        configuration.write_text(f"{limits}\nhttp {{\naccess_log off;\n{paths}{site}}}\n")

    def command(self) -> list[str]:
        return [
            *(program("nginx", "apt-get install nginx"), "-e", "stderr", "-p", str(self.directory)),
            *("-c", "nginx.conf", "-g", "daemon off; pid nginx.pid; error_log stderr notice;"),
        ]


class Deployment:
    """Two workers behind nginx, and a client."""

    def __init__(
        self, ports: list[int], workers: list[subprocess.Popen[str]], client: httpx.AsyncClient, redis: Redis
    ) -> None:
        self.ports, self.workers, self.client, self._redis = ports, workers, client, redis
        # How many polls were answered without a result.
        self.empty = 0

    async def poll(self, job: str) -> str:
        """The result. Asks again as long as there is none, as clients do."""
        while True:
            response = await self.client.get(f"/jobs/{job}")
            assert response.status_code in (200, 503), response.text
            if response.status_code == 200 and (result := response.json()) is not None:
                return str(result)
            self.empty += 1

    async def put(self, job: str) -> None:
        response = await self.client.put(f"/jobs/{job}", content=f"result of {job}")
        assert response.status_code == 202, response.text

    async def waits(self) -> None:
        """Return when a worker waits for each of the jobs, which it has subscribed to then."""
        channels = {f"jobs:{shard_of(encoded(job)):02x}" for job in JOBS}
        while not all(count for _, count in await self._redis.pubsub_numsub(*channels)):  # noqa: ASYNC110  # it is in another process
            await asyncio.sleep(0.01)

    def connections(self) -> int:
        """How many connections the workers have."""
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        local = [int(each[1].partition(":")[2], 16) for each in lines if each[3] == "01"]
        return sum(local.count(port) for port in self.ports)


@pytest_asyncio.fixture
async def deployment(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Deployment]:
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    write_modules(tmp_path)
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(Redis.from_url(redis_server.url))
        await redis.delete(*JOBS)
        first = free_ports(2)
        ports = [first, first + 1]
        workers = [stack.enter_context(worker(tmp_path, port)) for port in ports]
        nginx = stack.enter_context(Nginx(ports))
        base = f"http://127.0.0.1:{nginx.port}"
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=base, timeout=70))
        yield Deployment(ports, workers, client, redis)


async def results(polls: Sequence[asyncio.Task[str]]) -> list[str]:
    async with asyncio.timeout(SOON):
        return await asyncio.gather(*polls)


RESULTS = [f"result of {job}" for job in JOBS]


@asynccontextmanager
async def answered(deployment: Deployment) -> AsyncIterator[list[asyncio.Task[str]]]:
    """Polls for all jobs wait within the block. After it, they get their results."""
    polls = [asyncio.create_task(deployment.poll(job)) for job in JOBS]
    await deployment.waits()
    yield polls
    for job in JOBS:
        await deployment.put(job)
    assert await results(polls) == RESULTS


async def test_a_result_that_any_worker_takes_answers_the_polls_of_all(deployment: Deployment) -> None:
    async with answered(deployment):
        pass


async def test_the_polls_of_a_worker_that_dies_go_on_at_the_other(deployment: Deployment) -> None:
    async with answered(deployment):
        deployment.workers[0].kill()
        deployment.workers[0].wait(SOON)


async def test_the_polls_of_a_worker_that_stops_go_on_at_the_other(deployment: Deployment) -> None:
    async with answered(deployment) as polls:
        deployment.workers[0].terminate()
        await asyncio.to_thread(deployment.workers[0].wait, SOON)
        assert deployment.empty > 0
        assert not any(poll.done() for poll in polls)


async def test_a_client_that_leaves_takes_its_connection_to_the_worker_with_it(
    deployment: Deployment,
) -> None:
    polls = [asyncio.create_task(deployment.poll(job)) for job in JOBS]
    await deployment.waits()
    assert deployment.connections() >= len(JOBS)
    for poll in polls:
        poll.cancel()
    async with asyncio.timeout(SOON):
        while deployment.connections():  # noqa: ASYNC110  # they are those of other processes
            await asyncio.sleep(0.05)


async def test_what_belongs_to_one_worker_is_at_its_own_port_alone(deployment: Deployment) -> None:
    for path in ("/dashboard/", "/hears"):
        assert (await deployment.client.get(path)).status_code == 404
        for port in deployment.ports:
            assert (await deployment.client.get(f"http://127.0.0.1:{port}{path}")).status_code == 200
