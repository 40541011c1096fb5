"""The service with several workers and a real store, as its users run it."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.examples.longpoll.process import ROOT
from tests.relay.live.servers import PostgresServer, RedisServer, TransportServer

pytestmark = [pytest.mark.long, pytest.mark.real_time]

WORKERS = 4
TOPICS = 10


@pytest.fixture(scope="module", params=[RedisServer, PostgresServer])
def server(request: pytest.FixtureRequest) -> Iterator[TransportServer]:
    with request.param() as server:
        yield server


def option(server: TransportServer) -> list[str]:
    return ["--redis" if isinstance(server, RedisServer) else "--postgres", server.url]


class Workers:
    """A running service with several workers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.shared = ""
        # By the number of the worker, the address where it alone answers.
        self.alone: dict[int, str] = {}
        assert process.stdout is not None
        self.stdout = process.stdout
        self.first_line = self.stdout.readline()
        while len(self.alone) < WORKERS:
            self.read_address()

    def read_address(self) -> int | None:
        """Read one line, and return the number of the worker that has printed it."""
        line = self.stdout.readline()
        address = re.match(r"(\w+) *(\d*) +(http://[^/\s]+)", line)
        if address is None:
            self.process.terminate()
            raise AssertionError(line + self.stdout.read())
        if not address[2]:
            self.shared = address[3]
            return None
        self.alone[int(address[2])] = address[3]
        return int(address[2])

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(child) for child in path.read_text().split()]


@contextmanager
def running(server: TransportServer) -> Iterator[Workers]:
    command = [sys.executable, "-m", "examples.longpoll", "--port", "0", "--workers", str(WORKERS)]
    with subprocess.Popen(
        [*command, *option(server)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield Workers(process)
        finally:
            process.terminate()
            process.wait(60)


async def pending(client: httpx.AsyncClient, workers: Workers) -> int:
    counts = []
    for address in workers.alone.values():
        metrics = (await client.get(f"{address}/metrics")).text
        counts += re.findall(r'^purgatory_pending\{purgatory="polls"} (\d+)', metrics, re.MULTILINE)
    assert len(counts) == WORKERS
    return sum(map(int, counts))


async def until_all_wait(
    client: httpx.AsyncClient, workers: Workers, polls: Collection[asyncio.Task[httpx.Response]]
) -> None:
    while await pending(client, workers) < len(polls):
        for poll in polls:
            assert not poll.done(), poll
        await asyncio.sleep(0.02)


def client_of_many() -> httpx.AsyncClient:
    """Each request has a connection of its own, so that none meets one that the service is closing."""
    limits = httpx.Limits(max_connections=1_000, max_keepalive_connections=0)
    return httpx.AsyncClient(timeout=90, limits=limits)


def test_every_poll_is_answered_by_its_record_whatever_worker_takes_it(server: TransportServer) -> None:
    choose = random.Random(1)

    async def rounds(workers: Workers) -> None:
        async with client_of_many() as client:
            addresses = [*workers.alone.values(), workers.shared]
            # Where each topic goes on.
            offsets = dict.fromkeys([f"t{number}" for number in range(TOPICS)], 0)
            for _ in range(4):
                polls = {
                    asyncio.create_task(
                        client.get(f"{choose.choice(addresses)}/topics/{topic}?offset={offset}&wait=25")
                    ): topic
                    for topic, offset in offsets.items()
                    for _ in range(20)
                }
                await until_all_wait(client, workers, polls)
                for topic, offset in offsets.items():
                    url = f"{choose.choice(addresses)}/topics/{topic}"
                    answer = await client.post(url, json=[topic, offset])
                    assert (answer.status_code, answer.json()["offset"]) == (201, offset)
                for poll, topic in polls.items():
                    assert (await poll).json()["records"] == [[topic, offsets[topic]]]
                for topic in offsets:
                    offsets[topic] += 1

    with running(server) as workers:
        kind = "Redis" if isinstance(server, RedisServer) else "PostgreSQL"
        assert workers.first_line == f"Records and sessions are kept in {kind}.\n"
        asyncio.run(rounds(workers))


def test_a_signal_answers_the_polls_of_all_workers_and_leaves_no_process_behind(
    server: TransportServer,
) -> None:
    async def stop_under_load(workers: Workers) -> list[httpx.Response]:
        async with client_of_many() as client:
            polls = [
                asyncio.create_task(client.get(f"{address}/topics/empty?wait=25"))
                for address in workers.alone.values()
                for _ in range(25)
            ]
            await until_all_wait(client, workers, polls)
            workers.process.send_signal(signal.SIGTERM)
            return await asyncio.gather(*polls)

    with running(server) as workers:
        children = workers.children()
        answers = asyncio.run(stop_under_load(workers))
        assert workers.process.wait(60) == 0
        printed = workers.stdout.read()
    assert {answer.status_code for answer in answers} == {200}
    # What is left are the addresses of the last worker, and no error.
    assert {line.split()[0] for line in printed.splitlines()} <= {"dashboard", "metrics"}, printed
    assert len(children) == WORKERS
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_a_worker_that_dies_is_replaced(server: TransportServer) -> None:
    with running(server) as workers:
        victim = workers.children()[0]
        os.kill(victim, signal.SIGKILL)
        while "has ended with status -9" not in workers.stdout.readline():
            pass
        number = workers.read_address()
        assert number is not None
        assert httpx.get(f"{workers.alone[number]}/topics/t", timeout=60).status_code == 200
        assert victim not in workers.children()


def test_a_store_that_cannot_be_reached_is_refused_in_one_sentence(server: TransportServer) -> None:
    nowhere = [option(server)[0], server.url.replace(str(server.port), "1")]
    command = [sys.executable, "-m", "examples.longpoll", "--port", "0", "--workers", "2", *nowhere]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr.endswith("or choose another --redis or --postgres\n")
    assert "Traceback" not in refused.stderr
