"""A heartbeat makes its sender online, silence ends that, and a poll is answered by either change."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from examples.longpoll.service import Service
from purgatory.testing import VirtualTimeLoop


async def online(client: httpx.AsyncClient) -> list[str]:
    names: list[str] = (await client.get("/presence")).json()["online"]
    return names


async def test_heartbeats_keep_a_session_alive(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient, service: Service
) -> None:
    assert (await client.post("/presence/ada")).json() == {"name": "ada", "timeout": 15.0}
    await client.post("/presence/bob")
    for _ in range(10):
        await asyncio.sleep(10)
        await client.post("/presence/ada")
    assert await online(client) == ["ada"]
    assert service.sessions.statistics().pending == 1
    await asyncio.sleep(15.1)
    assert await online(client) == []


async def test_the_next_change_answers_a_poll(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient
) -> None:
    await client.post("/presence/ada")
    version = (await client.get("/presence")).json()["version"]
    poll = asyncio.create_task(client.get(f"/presence?wait=60&version={version}"))
    # The heartbeat of somebody who is online is no change; the end of the session is one.
    await asyncio.sleep(10)
    await client.post("/presence/ada")
    answer = await poll
    assert answer.json()["online"] == []
    assert virtual_time.time() == pytest.approx(25, abs=0.01)


async def test_without_a_change_a_poll_gets_the_same_answer_after_its_wait(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient
) -> None:
    first = await client.get("/presence?wait=60")
    assert virtual_time.time() < 1
    again = await client.get("/presence", params={"wait": 5, "version": first.json()["version"]})
    assert (again.status_code, again.json()) == (200, first.json())
    known = {"If-None-Match": first.headers["ETag"]}
    assert (await client.get("/presence?wait=5", headers=known)).status_code == 304
    assert virtual_time.time() == pytest.approx(10, abs=0.01)


async def test_leaving_makes_offline_at_once(client: httpx.AsyncClient, service: Service) -> None:
    await client.post("/presence/ada")
    for _ in range(2):
        assert (await client.delete("/presence/ada")).status_code == 204
    assert await online(client) == []
    assert service.sessions.statistics().pending == 0


async def test_a_name_may_have_letters_of_any_script_and_up_to_32_characters(
    client: httpx.AsyncClient,
) -> None:
    assert (await client.post("/presence/Zoë O'Neill-2")).status_code == 200
    for name in ("%00", "x" * 33, "<b>", "a%0Ab", "-"):
        assert (await client.post(f"/presence/{name}")).status_code == 422
    assert await online(client) == ["Zoë O'Neill-2"]


async def test_one_session_too_many_is_a_503(client: httpx.AsyncClient) -> None:
    for name in ("a", "b", "c"):
        assert (await client.post(f"/presence/{name}")).status_code == 200
    refused = await client.post("/presence/d")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    # Heartbeats of the others still work.
    assert (await client.post("/presence/a")).status_code == 200
    assert await online(client) == ["a", "b", "c"]
