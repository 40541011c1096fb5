"""The purgatory of a store of delayed messages is shown as any other."""

from __future__ import annotations

from pathlib import Path

import httpx

from purgatory.delayed import DelayedMessages
from purgatory.metrics import PurgatoryCollector
from purgatory.testing import VirtualTimeLoop
from purgatory.web import dashboard
from tests.scrape import Scrape


async def test_messages_that_are_due_within_a_second_are_pending_operations(
    tmp_path: Path, virtual_time: VirtualTimeLoop
) -> None:
    async def deliver(id: str, payload: bytes, due: float) -> None: ...

    messages = DelayedMessages(tmp_path, deliver, clock=virtual_time.time)
    transport = httpx.ASGITransport(dashboard(messages.purgatory))
    scrape = Scrape(PurgatoryCollector(messages.purgatory))
    async with messages, httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        await messages.schedule(b"tea", at=virtual_time.time() + 0.5)
        await messages.schedule(b"milk", at=virtual_time.time() + 60)
        snapshot = (await client.get("/data")).json()
        assert scrape.value("purgatory_pending", purgatory="delayed") == 1
    assert snapshot["tabs"] == [{"name": "delayed", "pending": 1}]
