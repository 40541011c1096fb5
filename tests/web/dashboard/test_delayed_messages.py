"""The purgatory of a store of delayed messages is shown as any other, with the figures of the store."""

from __future__ import annotations

from pathlib import Path

import httpx

from purgatory import Purgatory
from purgatory._figures.messages import MESSAGE_FIGURES
from purgatory.delayed import DelayedMessages
from purgatory.metrics import PurgatoryCollector
from purgatory.testing import VirtualTimeLoop
from purgatory.web import dashboard
from tests.scrape import Scrape


async def deliver(id: str, payload: bytes, due: float) -> None: ...


async def test_messages_that_are_due_within_a_second_are_pending_operations(
    tmp_path: Path, virtual_time: VirtualTimeLoop
) -> None:
    messages = DelayedMessages(tmp_path, deliver, clock=virtual_time.time)
    transport = httpx.ASGITransport(dashboard(messages.purgatory))
    scrape = Scrape(PurgatoryCollector(messages.purgatory))
    async with messages, httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        await messages.schedule(b"tea", at=virtual_time.time() + 0.5)
        await messages.schedule(b"milk", at=virtual_time.time() + 60)
        snapshot = (await client.get("/data")).json()
        assert scrape.value("purgatory_pending", purgatory="delayed") == 1
    assert [(each["name"], each["pending"]) for each in snapshot["health"]] == [("delayed", 1)]
    assert snapshot["messages"] == []


async def test_a_store_has_a_tab_behind_the_purgatories_and_its_figures_there(
    tmp_path: Path, virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    messages = DelayedMessages(tmp_path, deliver, clock=virtual_time.time)
    transport = httpx.ASGITransport(dashboard(purgatory, messages=[messages]))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

        async def figures(name: str) -> dict[str, int]:
            return dict((await client.get("/data", params={"purgatory": name})).json()["messages"])

        # The store is not open yet.
        assert await figures("delayed") == {}
        virtual_time.jump(2)
        async with messages:
            for seconds in (1, 60):
                receipt = await messages.schedule(b"tea", at=virtual_time.time() + seconds)
            await messages.cancel(receipt)
            before = messages.statistics()
            shown = await figures("delayed")
            after = messages.statistics()
            assert await figures("purgatory") == {}
        assert list(shown) == [figure.title for figure in MESSAGE_FIGURES]
        for figure in MESSAGE_FIGURES:
            # A thread of the store may write meanwhile.
            assert getattr(before, figure.field) <= shown[figure.title] <= getattr(after, figure.field)
        assert (shown["Scheduled"], shown["Cancelled"]) == (2, 1)
        assert shown["Bytes to the log"] > 50
