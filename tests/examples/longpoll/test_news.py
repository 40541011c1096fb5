"""One poll waits for the records of several topics, for who is online, and for the list of topics."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from examples.longpoll.application import application
from examples.longpoll.limits import Limits
from examples.longpoll.service import Service
from purgatory.testing import VirtualTimeLoop

News = dict[str, Any]


class Follower:
    """A client that follows topics and the names, and goes on where each answer ended."""

    def __init__(self, client: httpx.AsyncClient, *topics: str) -> None:
        self._client = client
        self.positions = {topic: topic for topic in topics}
        self.versions = {"online": "", "topics": ""}

    async def ask(self, wait: float = 0.0) -> News:
        query: dict[str, Any] = {"follow": list(self.positions.values()), "wait": wait, **self.versions}
        answer = await self._client.get("/news", params=query)
        assert answer.status_code == 200, answer.text
        news: News = answer.json()
        for page in news["pages"]:
            self.positions[page["topic"]] = f"{page['topic']}:{page['log']}:{page['next']}"
        for kind in self.versions:
            if news[kind] is not None:
                self.versions[kind] = news[kind]["version"]
        return news

    def poll(self) -> asyncio.Task[News]:
        return asyncio.create_task(self.ask(wait=60))


def records(news: News) -> dict[str, list[Any]]:
    return {page["topic"]: page["records"] for page in news["pages"]}


async def until_pending(service: Service) -> None:
    for _ in range(1_000):
        if service.polls.statistics().pending:
            return
        await asyncio.sleep(0)
    raise AssertionError(service.polls)


async def test_the_first_answer_has_everything_at_once(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient
) -> None:
    await client.post("/topics/a", json=1)
    await client.post("/presence/ada")
    news = await Follower(client, "a", "b").ask(wait=60)
    assert records(news) == {"a": [1], "b": []}
    assert news["online"]["names"] == ["ada"]
    assert news["topics"]["names"] == ["a"]
    assert virtual_time.time() < 1


async def test_one_operation_waits_for_everything_and_the_first_change_answers_it(
    client: httpx.AsyncClient, service: Service
) -> None:
    await client.post("/topics/b", json=0)
    follower = Follower(client, "a", "b")
    await follower.ask()

    async def next_news(method: str, url: str, **arguments: Any) -> News:
        poll = follower.poll()
        await until_pending(service)
        assert service.polls.statistics().pending == 1
        assert service.polls.statistics().watched == 4
        await client.request(method, url, **arguments)
        return await poll

    news = await next_news("POST", "/topics/b", json="news")
    assert (records(news), news["online"], news["topics"]) == ({"a": [], "b": ["news"]}, None, None)
    news = await next_news("POST", "/presence/ada")
    assert (records(news), news["topics"]) == ({"a": [], "b": []}, None)
    assert news["online"]["names"] == ["ada"]
    news = await next_news("POST", "/topics/unfollowed", json=1)
    assert (records(news), news["online"]) == ({"a": [], "b": []}, None)
    assert news["topics"]["names"] == ["b", "unfollowed"]
    news = await next_news("DELETE", "/presence/ada")
    assert news["online"]["names"] == []
    assert service.polls.statistics().keys == 0


async def test_without_news_a_poll_is_answered_after_its_wait(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient
) -> None:
    follower = Follower(client, "a")
    await follower.ask()
    news = await follower.ask(wait=20)
    assert (records(news), news["online"], news["topics"]) == ({"a": []}, None, None)
    assert virtual_time.time() == pytest.approx(20, abs=0.01)


async def test_what_is_not_followed_is_not_told(client: httpx.AsyncClient) -> None:
    await client.post("/presence/ada")
    await client.post("/topics/a", json=1)
    answer = (await client.get("/news?online=")).json()
    assert (answer["pages"], answer["online"]["names"], answer["topics"]) == ([], ["ada"], None)
    answer = (await client.get("/news?follow=a")).json()
    assert (records(answer), answer["online"], answer["topics"]) == ({"a": [1]}, None, None)


async def test_what_is_not_followed_answers_no_poll(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient
) -> None:
    await client.post("/presence/ada")
    await client.post("/topics/a", json=1)
    log = (await client.get("/topics/a")).json()["log"]
    answer = await client.get(f"/news?follow=a:{log}:1&wait=20")
    assert records(answer.json()) == {"a": []}
    assert virtual_time.time() == pytest.approx(20, abs=0.01)
    # No cache keeps it for the next poll.
    assert answer.headers["Cache-Control"] == "no-store"


async def test_every_record_is_read_once(client: httpx.AsyncClient) -> None:
    # A log keeps four records, and a page has three.
    for number in range(4):
        await client.post("/topics/a", json=number)
    follower = Follower(client, "a")
    assert records(await follower.ask()) == {"a": [0, 1, 2]}
    assert records(await follower.ask(wait=60)) == {"a": [3]}
    assert records(await follower.ask()) == {"a": []}


async def test_a_topic_may_be_followed_from_two_places(client: httpx.AsyncClient) -> None:
    """One poll serves several tabs of a browser, which have not read equally far."""
    for number in range(2):
        await client.post("/topics/a", json=number)
    log = (await client.get("/topics/a")).json()["log"]
    pages = (await client.get(f"/news?follow=a:{log}:1&follow=a")).json()["pages"]
    assert [(page["offset"], page["records"]) for page in pages] == [(1, [1]), (0, [0, 1])]


async def test_where_the_place_is_gone_the_page_begins_with_the_oldest_record(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient
) -> None:
    for number in range(6):
        await client.post("/topics/a", json=number)
    log = (await client.get("/topics/a")).json()["log"]
    for position in (f"a:{log}:1", f"a:{log}:7", "a:another:3"):
        (page,) = (await client.get(f"/news?follow={position}&wait=60")).json()["pages"]
        assert (page["offset"], page["records"]) == (2, [2, 3, 4]), position
    assert virtual_time.time() < 1


async def test_an_answer_has_no_more_bytes_than_one_log_keeps() -> None:
    service = Service(Limits(record_bytes=600, log_bytes=1_000))
    async with service.running():
        transport = httpx.ASGITransport(application(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for topic in ("a", "b", "c"):
                await client.post(f"/topics/{topic}", json="x" * 498)
            follower = Follower(client, "a", "b", "c")
            lengths = [
                [len(page["records"]) for page in (await follower.ask(wait=20))["pages"]] for _ in range(2)
            ]
    assert lengths == [[1, 1, 0], [0, 0, 1]]


async def test_a_poll_that_follows_nothing_is_a_400_and_too_much_a_422(client: httpx.AsyncClient) -> None:
    assert (await client.get("/news?wait=60")).status_code == 400
    many = "&".join(f"follow=t{number}" for number in range(65))
    for query in (many, "follow=", "follow=a:b", "follow=a:log:-1", "follow=a:log:1e3", "online=&wait=60.1"):
        assert (await client.get(f"/news?{query}")).status_code == 422, query


async def test_a_service_that_stops_answers_at_once(client: httpx.AsyncClient, service: Service) -> None:
    follower = Follower(client, "a")
    await follower.ask()
    poll = follower.poll()
    await until_pending(service)
    await service.polls.aclose()
    assert records(await poll) == {"a": []}
