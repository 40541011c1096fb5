"""Workers share the topics. Here two run on one loop, with a store in memory."""

from __future__ import annotations

import random

import httpx

from purgatory.testing import VirtualTimeLoop
from tests.examples.longpoll.conftest import FaultyStore, Worker


async def test_a_record_in_one_worker_answers_a_poll_in_the_other(
    workers: tuple[Worker, Worker], virtual_time: VirtualTimeLoop
) -> None:
    first, second = workers
    poll = await second.poll("/topics/t?wait=20")
    await first.say("t", "news")
    assert (await poll).json()["records"][0]["text"] == "news"
    assert virtual_time.time() < 1


async def test_a_record_is_there_at_once_for_a_client_that_reaches_another_worker(
    workers: tuple[Worker, Worker],
) -> None:
    first, second = workers
    for number in range(3):
        await first.say("t", str(number))
        found = (await second.client.get("/topics/t")).json()["records"]
        assert [record["text"] for record in found] == [str(n) for n in range(number + 1)]


async def test_a_client_that_reaches_another_worker_each_time_gets_every_record_once(
    workers: tuple[Worker, Worker],
) -> None:
    choose, seen = random.Random(1), []
    url = httpx.URL("http://localhost/topics/t?wait=20")
    for number in range(50):
        poll = await choose.choice(workers).poll(str(url)) if choose.random() < 0.5 else None
        await choose.choice(workers).say("t", str(number))
        answer = await (poll or choose.choice(workers).client.get(url))
        seen += [record["text"] for record in answer.json()["records"]]
        url = url.join(answer.links["next"]["url"])
    assert seen == [str(number) for number in range(50)]


async def test_without_the_store_requests_get_a_503_and_polls_go_on(
    workers: tuple[Worker, Worker], store: FaultyStore
) -> None:
    first, second = workers
    poll = await second.poll("/topics/t?wait=25")
    store.away = True
    message = {"name": "ada", "text": "news"}
    refusals = [
        await first.client.post("/topics/t", json=message),
        await first.client.post("/presence/ada"),
        await first.client.get("/topics/t?people="),
    ]
    assert [(each.status_code, each.headers["Retry-After"]) for each in refusals] == [(503, "1")] * 3
    store.away = False
    await first.say("t", "news")
    assert [record["text"] for record in (await poll).json()["records"]] == ["news"]
