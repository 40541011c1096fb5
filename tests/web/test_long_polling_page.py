"""The first example of docs/long-polling.md works."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx

from purgatory import Purgatory

PAGE = Path(__file__).parents[2] / "docs/long-polling.md"


async def test_the_first_example_answers_a_poll_with_the_next_record() -> None:
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example is not None
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example[1], str(PAGE), "exec"), names)
    app, polls = names["app"], names["polls"]
    assert isinstance(polls, Purgatory)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test") as client,
    ):
        poll = asyncio.create_task(client.get("/records"))
        async with asyncio.timeout(5):
            while not polls.statistics().pending:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0)
        await client.post("/records", params={"record": "news"})
        assert (await poll).json() == ["news"]
        stopped = asyncio.create_task(client.get("/records", params={"offset": 1}))
        async with asyncio.timeout(5):
            while not polls.statistics().pending:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0)
        await polls.aclose()
        assert (await stopped).json() == []
        assert (await client.get("/records", params={"offset": 1})).status_code == 503
