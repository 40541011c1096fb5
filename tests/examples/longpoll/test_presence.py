"""People who send heartbeats are online, and polls hear who comes and goes."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from examples.longpoll.presence import People
from examples.longpoll.store import SESSION_TIMEOUT
from purgatory.testing import VirtualTimeLoop
from tests.examples.longpoll.conftest import FaultyStore, Worker


async def people(worker: Worker) -> tuple[list[str], str]:
    answer = (await worker.client.get("/topics/t?people=")).json()["people"]
    return answer["names"], answer["version"]


async def hears(poll: asyncio.Task[httpx.Response]) -> list[str]:
    names: list[str] = (await poll).json()["people"]["names"]
    return names


async def test_who_comes_and_goes_is_heard_in_every_worker(
    workers: tuple[Worker, Worker], virtual_time: VirtualTimeLoop
) -> None:
    first, second = workers
    for act, expected in ((first.client.post, ["ada"]), (first.client.delete, [])):
        _, version = await people(second)
        polls = [await worker.poll(f"/topics/t?people={version}&wait=20") for worker in workers]
        assert (await act("/presence/ada")).is_success
        assert [await hears(poll) for poll in polls] == [expected, expected]
    assert virtual_time.time() < 1


async def test_a_client_that_knows_who_is_online_hears_of_records_alone(worker: Worker) -> None:
    await worker.client.post("/presence/ada")
    _, version = await people(worker)
    poll = await worker.poll(f"/topics/t?people={version}&wait=20")
    # It is no news that somebody is still online.
    await worker.client.post("/presence/ada")
    await worker.say("t", "news")
    answer = (await poll).json()
    assert (answer["people"], len(answer["records"])) == (None, 1)
    unasked = await worker.client.get("/topics/t")
    assert unasked.json()["people"] is None


async def test_a_session_lasts_for_its_timeout_after_the_last_heartbeat(
    workers: tuple[Worker, Worker], virtual_time: VirtualTimeLoop
) -> None:
    # Any worker may get the next heartbeat.
    for number in range(10):
        assert (await workers[number % 2].client.post("/presence/ada")).json() == SESSION_TIMEOUT
        last = virtual_time.time()
        await asyncio.sleep(SESSION_TIMEOUT * 0.2)
        assert (await people(workers[0]))[0] == ["ada"]
    await asyncio.sleep(SESSION_TIMEOUT * 0.5)
    names, version = await people(workers[0])
    poll = await workers[0].poll(f"/topics/t?people={version}&wait=25")
    assert (names, await hears(poll)) == (["ada"], [])
    assert virtual_time.time() == pytest.approx(last + SESSION_TIMEOUT, abs=0.1)


async def test_somebody_whose_worker_has_died_is_missed_soon_after_the_session(
    worker: Worker, store: FaultyStore, virtual_time: VirtualTimeLoop
) -> None:
    # A worker that is gone signals nothing.
    await store.heartbeat("ada")
    version = (await people(worker))[1]
    while (await worker.client.get(f"/topics/t?people={version}&wait=25")).json()["people"] is None:
        pass
    assert SESSION_TIMEOUT <= virtual_time.time() <= SESSION_TIMEOUT + 31


async def test_one_session_too_many_is_a_503_until_one_ends(worker: Worker) -> None:
    for number in range(1_000):
        await worker.service.presence.heartbeat(f"p{number}")
    refused = await worker.client.post("/presence/more")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    await worker.client.delete("/presence/p0")
    assert (await worker.client.post("/presence/more")).status_code == 200


def test_the_version_is_the_same_in_all_workers_for_the_same_names_alone() -> None:
    assert People.of(["b", "a"]) == People.of(["a", "b"])
    versions = {People.of(names).version for names in ([], ["a"], ["b"], ["a", "b"], ["a b"])}
    assert len(versions) == 5
