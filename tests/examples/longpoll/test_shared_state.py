"""Processes of the service share topics and presence. Here two run on one loop, with a store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest_asyncio

from examples.longpoll.application import application
from examples.longpoll.limits import Limits
from examples.longpoll.service import Service
from examples.longpoll.store import PATIENCE
from purgatory.testing import VirtualTimeLoop
from tests.examples.longpoll.memory_store import MemoryStore

LIMITS = Limits(wait=60, log_records=4, answer_records=3)


class Worker:
    """A process of the service, and a client that reaches no other."""

    def __init__(self, store: MemoryStore) -> None:
        self.service = Service(LIMITS, store)
        transport = httpx.ASGITransport(application(self.service))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def poll(self, url: str) -> asyncio.Task[httpx.Response]:
        return asyncio.create_task(self.client.get(url))

    async def until_pending(self, count: int = 1) -> None:
        """Let time pass until `count` polls are pending, and what they wait for has been looked at."""
        for _ in range(1_000):
            await asyncio.sleep(0.01)
            waiting = self.service.relays[0].statistics().waiting
            if self.service.polls.statistics().pending == count and not waiting:
                return
        raise AssertionError(self.service.polls)


@pytest_asyncio.fixture
async def store(virtual_time: VirtualTimeLoop) -> MemoryStore:
    return MemoryStore(LIMITS)


@pytest_asyncio.fixture
async def workers(store: MemoryStore) -> AsyncIterator[tuple[Worker, Worker]]:
    async with AsyncExitStack() as stack:
        pair = Worker(store), Worker(store)
        for worker in pair:
            await stack.enter_async_context(worker.service.running())
            await stack.enter_async_context(worker.client)
        yield pair


async def append(worker: Worker, topic: str, *records: object) -> None:
    for record in records:
        assert (await worker.client.post(f"/topics/{topic}", json=record)).status_code == 201


async def online(worker: Worker) -> list[str]:
    names: list[str] = (await worker.client.get("/presence")).json()["online"]
    return names


async def test_a_record_that_one_process_takes_answers_the_polls_of_all(
    workers: tuple[Worker, Worker], virtual_time: VirtualTimeLoop
) -> None:
    first, second = workers
    polls = [worker.poll("/topics/t?wait=60") for worker in workers]
    await first.until_pending()
    await second.until_pending()
    await append(first, "t", "news")
    assert [(await poll).json()["records"] for poll in polls] == [["news"], ["news"]]
    # Before the anti-entropy.
    assert virtual_time.time() < 1


async def test_offsets_are_those_of_all_processes_together(workers: tuple[Worker, Worker]) -> None:
    first, second = workers
    await append(first, "t", 0)
    await append(second, "t", 1)
    await append(first, "t", 2)
    page = (await second.client.get("/topics/t")).json()
    assert (page["offset"], page["next"], page["records"]) == (0, 3, [0, 1, 2])


async def test_a_client_may_follow_a_link_in_another_process(workers: tuple[Worker, Worker]) -> None:
    first, second = workers
    await second.client.get("/topics/t")
    await append(first, "t", 0, 1)
    answer = await first.client.get("/topics/t?wait=5")
    link = httpx.URL("http://localhost/topics/t").join(answer.links["next"]["url"])
    poll = second.poll(str(link))
    await second.until_pending()
    await append(first, "t", 2)
    assert (await poll).json()["records"] == [2]


async def test_both_processes_drop_the_same_records(workers: tuple[Worker, Worker]) -> None:
    first, second = workers
    await append(first, "t", 0)
    await second.client.get("/topics/t")
    await append(first, "t", *range(1, 6))
    for worker in workers:
        assert (await worker.client.get("/topics/t?offset=1")).status_code == 410
        assert (await worker.client.get("/topics/t")).json()["records"] == [2, 3, 4]


async def test_a_poll_gets_a_410_when_the_store_has_lost_the_log(
    workers: tuple[Worker, Worker], store: MemoryStore
) -> None:
    first, second = workers
    await append(first, "t", 0)
    poll = second.poll("/topics/t?offset=1&wait=60")
    await second.until_pending()
    store.empty()
    await append(first, "t", "of another log")
    assert (await poll).status_code == 410


async def test_who_comes_and_goes_in_one_process_is_seen_in_the_other(
    workers: tuple[Worker, Worker], virtual_time: VirtualTimeLoop
) -> None:
    first, second = workers
    empty = (await second.client.get("/presence")).json()
    for act, expected in ((first.client.post, ["ada"]), (first.client.delete, [])):
        version = (await second.client.get("/presence")).json()["version"]
        poll = second.poll(f"/presence?wait=60&version={version}")
        await second.until_pending()
        assert (await act("/presence/ada")).status_code in (200, 204)
        answer = (await poll).json()
        assert answer["online"] == expected
        assert (await first.client.get("/presence")).json() == answer
    assert answer == empty
    assert virtual_time.time() < 1


async def test_the_first_poll_of_a_process_gets_the_records_with_the_other_news(
    workers: tuple[Worker, Worker],
) -> None:
    first, second = workers
    await append(first, "t", 0)
    # Who is online is news already.
    pages = (await second.client.get("/news?follow=t&follow=empty&online=&wait=60")).json()["pages"]
    assert [page["records"] for page in pages] == [[0], []]
    # What it answers, it accepts.
    positions = "&".join(f"follow={page['topic']}:{page['log']}:{page['next']}" for page in pages)
    poll = second.poll(f"/news?{positions}&wait=60")
    await second.until_pending()
    await append(first, "empty", 1)
    assert [page["records"] for page in (await poll).json()["pages"]] == [[], [1]]


async def test_one_poll_hears_of_everything_that_happens_in_another_process(
    workers: tuple[Worker, Worker], virtual_time: VirtualTimeLoop
) -> None:
    first, second = workers
    await append(first, "t", 0)

    async def ask(wait: int) -> dict[str, Any]:
        answer = await second.client.get(f"/news?{query}&wait={wait}")
        assert answer.status_code == 200
        news: dict[str, Any] = answer.json()
        return news

    query = "follow=t&online=&topics="
    news = await ask(0)
    (page,) = news["pages"]
    assert (page["records"], news["online"]["names"], news["topics"]["names"]) == ([0], [], ["t"])
    versions = {kind: news[kind]["version"] for kind in ("online", "topics")}
    query = f"follow=t:{page['log']}:1&online={versions['online']}&topics={versions['topics']}"
    acts: list[Callable[[], Awaitable[object]]] = [
        lambda: append(first, "t", 1),
        lambda: first.client.post("/presence/ada"),
        lambda: append(first, "new", 0),
    ]
    for number, act in enumerate(acts):
        poll = asyncio.create_task(ask(60))
        await second.until_pending()
        await act()
        news = await poll
        if number == 0:
            assert news["pages"][0]["records"] == [1]
            query = query.replace(":1&", ":2&")
        elif number == 1:
            assert news["online"]["names"] == ["ada"]
            query = query.replace(versions["online"], news["online"]["version"])
        else:
            assert news["topics"]["names"] == ["new", "t"]
    # Before the anti-entropy.
    assert virtual_time.time() < 1


async def test_somebody_who_has_left_without_a_word_is_missed_soon_after_the_session(
    workers: tuple[Worker, Worker], virtual_time: VirtualTimeLoop
) -> None:
    first, second = workers
    await first.client.post("/presence/ada")
    version = (await second.client.get("/presence")).json()["version"]
    poll = second.poll(f"/presence?wait=60&version={version}")
    assert (await poll).json()["online"] == []
    assert LIMITS.session_timeout <= virtual_time.time() <= LIMITS.session_timeout * 4 / 3 + 0.1


async def test_without_the_store_requests_get_a_503_and_polls_go_on(
    workers: tuple[Worker, Worker], store: MemoryStore
) -> None:
    first, second = workers
    poll = second.poll("/topics/t?wait=60")
    await second.until_pending()
    store.away = True
    acts: list[Callable[[], Awaitable[httpx.Response]]] = [
        lambda: first.client.get("/topics/t"),
        lambda: first.client.post("/topics/t", json=1),
        lambda: first.client.get("/presence"),
        lambda: first.client.post("/presence/ada"),
    ]
    for act in acts:
        refused = await act()
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    store.away = False
    await append(first, "t", "news")
    assert (await poll).json()["records"] == ["news"]


async def test_a_store_that_does_not_answer_holds_no_request_for_long(
    workers: tuple[Worker, Worker], store: MemoryStore, virtual_time: VirtualTimeLoop
) -> None:
    store.frozen = True
    answers = await asyncio.gather(*(workers[0].client.get("/topics/t") for _ in range(10)))
    assert {answer.status_code for answer in answers} == {503}
    assert virtual_time.time() < 2 * PATIENCE


async def test_the_figures_of_the_relay_are_on_the_dashboard_and_in_the_metrics(
    workers: tuple[Worker, Worker],
) -> None:
    first, _ = workers
    assert dict((await first.client.get("/dashboard/data")).json()["relay"])["Connected"] is True
    assert 'purgatory_relay_connected{purgatory="polls"} 1.0' in (await first.client.get("/metrics")).text
