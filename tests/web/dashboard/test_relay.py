"""The figures of a relay are shown with those of its purgatory."""

from __future__ import annotations

import httpx
import pytest

from purgatory import Purgatory
from purgatory._figures.relay import RELAY_FIGURES
from purgatory.relay import Relay, RelayStatistics
from purgatory.testing import InProcessBroker, VirtualTimeLoop
from purgatory.web import dashboard
from tests.scrape import FakeRelay


async def test_each_statistic_of_a_relay_has_its_place(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    other = Purgatory("other")
    transport = httpx.ASGITransport(dashboard(purgatory, other, relays=[FakeRelay(other)]))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/data")).json()["relay"] == []
        shown = (await client.get("/data", params={"purgatory": "other"})).json()["relay"]
    assert shown == [
        [figure.title, value] for figure, value in zip(RELAY_FIGURES, (True, *range(2, 16)), strict=True)
    ]
    assert {figure.field for figure in RELAY_FIGURES} == set(RelayStatistics.__dataclass_fields__)


async def test_a_relay_that_was_not_entered_yet_is_shown_as_not_connected(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    relay = Relay(purgatory, InProcessBroker().transport())
    transport = httpx.ASGITransport(dashboard(purgatory, relays=[relay]))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

        async def shown() -> dict[str, object]:
            virtual_time.jump(2)
            return dict((await client.get("/data")).json()["relay"])

        before = await shown()
        async with relay:
            relay.signal("tea")
            within = await shown()
    assert (before["Connected"], before["Heartbeat age in seconds"]) == (False, None)
    assert (within["Connected"], within["Signals"]) == (True, 1)


def test_a_relay_of_a_purgatory_that_is_not_shown_is_refused(purgatory: Purgatory) -> None:
    with pytest.raises(ValueError, match="pass its purgatory"):
        dashboard(purgatory, relays=[FakeRelay(Purgatory("other"))])
