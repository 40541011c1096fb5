"""The programs of the documentation refuse wrong positions, and skip no record when a log begins again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.docs.programs import DOCS, programs_of

LONG_POLL = DOCS / "how-to" / "long-poll.md"
EVENTS = DOCS / "how-to" / "server-sent-events.md"
WEBSOCKET = DOCS / "how-to" / "websocket.md"
LONG_POLLING = DOCS / "long-polling.md"


def program(page: Path) -> dict[str, Any]:
    """The names of the first program of `page`."""
    names: dict[str, Any] = {"__name__": "program"}
    exec(next(programs_of(page)).code, names)
    return names


def client_of(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


@pytest.mark.parametrize(
    ("page", "path", "status"),
    [
        (EVENTS, "/events?after=-1", 400),
        (EVENTS, "/events?after=one", 400),
        (LONG_POLL, "/records?after=log:-1", 400),
        (LONG_POLLING, "/records?after=log:-1", 400),
        (LONG_POLLING, "/records?wait=inf", 422),
    ],
)
async def test_a_request_with_a_wrong_position_or_wait_is_refused(page: Path, path: str, status: int) -> None:
    names = program(page)
    app: FastAPI = names["create_app"]() if "create_app" in names else names["app"]
    async with client_of(app) as client:
        assert (await client.get(path)).status_code == status


async def test_a_negative_last_event_id_is_refused() -> None:
    async with client_of(program(EVENTS)["create_app"]()) as client:
        assert (await client.get("/events", headers={"Last-Event-ID": "log:-1"})).status_code == 400


@pytest.mark.real_time
async def test_a_websocket_with_a_wrong_position_is_refused() -> None:
    names = program(WEBSOCKET)
    async with names["serve"](names["create_app"]()) as url:
        with pytest.raises(InvalidStatus, match="400"):
            await connect(f"{url}?after=-1")


@pytest.mark.parametrize("records", [["a", "b", "c"], []], ids=["more records", "fewer records"])
async def test_a_poll_that_goes_on_after_a_restart_is_told_that_its_position_is_gone(
    records: list[str],
) -> None:
    names = program(LONG_POLL)
    app, restarted = names["create_app"](), names["create_app"]()
    async with app.router.lifespan_context(app), client_of(app) as client:
        await client.post("/records", params={"record": "before"})
        position = (await client.get("/records")).json()["next"]
    async with restarted.router.lifespan_context(restarted), client_of(restarted) as client:
        for record in records:
            await client.post("/records", params={"record": record})
        assert (await client.get("/records", params={"after": position, "wait": 0})).status_code == 410
        again = await client.get("/records", params={"wait": 0})
        assert (again.json()["records"] if records else again.status_code) == (records or 204)


async def test_a_link_and_a_tag_of_the_log_before_a_restart_name_no_records_of_the_new_one() -> None:
    names, restarted = program(LONG_POLLING), program(LONG_POLLING)
    async with names["polls"], client_of(names["app"]) as client:
        first = await client.get("/records")
    async with restarted["polls"], client_of(restarted["app"]) as client:
        assert (await client.get("/records" + first.links["next"]["url"])).status_code == 410
        again = await client.get("/records", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.json()) == (200, ["a", "b"])


@pytest.mark.real_time
async def test_a_stream_that_goes_on_after_a_restart_has_all_records_of_the_new_log() -> None:
    names = program(EVENTS)

    async def ids_and_records(last: str | None, *records: str) -> tuple[str, list[str]]:
        """The id of the last event, and the records, that a stream of a new process has."""
        app = names["create_app"]()
        async with names["serve"](app) as url, httpx.AsyncClient(base_url=url) as client:
            for record in records:
                await client.post("/records", params={"record": record})
            stream = names["lines"](client, last)
            lines = [await anext(stream) for _ in range(3 * len(records))]
            await stream.aclose()
        return lines[-3].removeprefix("id: "), [line.removeprefix("data: ") for line in lines[1::3]]

    last, before = await ids_and_records(None, "x", "y")
    assert before == ["x", "y"]
    assert (await ids_and_records(last, "a", "b", "c"))[1] == ["a", "b", "c"]


@pytest.mark.real_time
async def test_a_websocket_that_goes_on_after_a_restart_has_all_records_of_the_new_log() -> None:
    names = program(WEBSOCKET)

    async def messages(query: str, *records: str) -> list[dict[str, str]]:
        """The messages that a second connection to a new process has, which has these records already."""
        async with names["serve"](names["create_app"]()) as url:
            async with connect(url) as first:
                for record in records:
                    await first.send(record)
                    await first.recv()
            async with connect(f"{url}{query}") as second, asyncio.timeout(10):
                return [json.loads(await second.recv()) for _ in records]

    position = (await messages("", "x", "y"))[-1]["next"]
    after = await messages(f"?after={position}", "a", "b", "c")
    assert [message["record"] for message in after] == ["a", "b", "c"]
