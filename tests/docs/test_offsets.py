"""The programs of the documentation refuse a negative offset, whose condition would always hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.docs.programs import DOCS, programs_of


def program(page: Path) -> dict[str, Any]:
    """The names of the first program of `page`."""
    names: dict[str, Any] = {"__name__": "program"}
    exec(next(programs_of(page)).code, names)
    return names


@pytest.mark.parametrize(
    ("page", "path", "status"),
    [
        ("how-to/server-sent-events.md", "/events?after=-1", 400),
        ("how-to/server-sent-events.md", "/events?after=one", 400),
        ("how-to/long-poll.md", "/records?offset=-1", 422),
        ("long-polling.md", "/records?offset=-1", 422),
        ("long-polling.md", "/records?wait=inf", 422),
    ],
)
async def test_a_request_with_a_wrong_offset_or_wait_is_refused(page: str, path: str, status: int) -> None:
    names = program(DOCS / page)
    app: FastAPI = names["create_app"]() if "create_app" in names else names["app"]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        assert (await client.get(path)).status_code == status


async def test_a_negative_last_event_id_is_refused() -> None:
    app: FastAPI = program(DOCS / "how-to/server-sent-events.md")["create_app"]()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        assert (await client.get("/events", headers={"Last-Event-ID": "-1"})).status_code == 400


@pytest.mark.real_time
async def test_a_websocket_with_a_negative_offset_is_refused() -> None:
    names = program(DOCS / "how-to/websocket.md")
    async with names["serve"](names["create_app"]()) as url:
        with pytest.raises(InvalidStatus, match="403"):
            await connect(f"{url}?offset=-1")
