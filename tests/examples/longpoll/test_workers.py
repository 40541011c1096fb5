"""Workers share the topics. Here two run on one loop, with a store in memory."""

from __future__ import annotations

import asyncio
import random

import httpx

from purgatory.testing import VirtualTimeLoop
from tests.examples.longpoll.conftest import FaultyStore, Worker


async def test_a_client_that_reaches_another_worker_each_time_gets_every_record_once_and_at_once(
    workers: tuple[Worker, Worker], virtual_time: VirtualTimeLoop
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
    assert virtual_time.time() < 5


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


async def test_answers_of_the_store_that_come_in_another_order_undo_nothing(
    worker: Worker, store: FaultyStore
) -> None:
    topics, presence = worker.service.topics, worker.service.presence
    await store.append("t", b"0")
    store.delays = [2, 2, 1, 1]
    late = [asyncio.create_task(topics.load(["t"])), asyncio.create_task(presence.load())]
    await asyncio.sleep(0.5)
    await store.append("t", b"1")
    await store.heartbeat("ada")
    await asyncio.gather(topics.load(["t"]), presence.load(), *late)
    assert topics.log("t").read(0) == (b"0", b"1")
    assert presence.now.names == ("ada",)
