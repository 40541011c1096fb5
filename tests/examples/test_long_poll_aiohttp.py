"""The aiohttp example tells every price, withdraws who leaves, and answers who waits when it stops."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web

from examples import long_poll_aiohttp
from examples.long_poll_aiohttp import Ticker, application
from purgatory import Purgatory
from tests.operations import Gate

pytestmark = pytest.mark.real_time


async def test_it_does_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert await long_poll_aiohttp.main() == [100, 101, 99, 99]
    assert "1 client has left; the server stops" in capsys.readouterr().out


@pytest_asyncio.fixture
async def purgatory() -> AsyncIterator[Purgatory]:
    async with Purgatory(max_pending=1) as purgatory:
        yield purgatory


@pytest_asyncio.fixture
async def url(purgatory: Purgatory) -> AsyncIterator[str]:
    runner = web.AppRunner(application(Ticker(purgatory)))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/price"
    await runner.cleanup()


async def test_a_poll_too_many_is_a_503_with_retry_after(purgatory: Purgatory, url: str) -> None:
    gate = purgatory.try_complete_else_watch(Gate(), ["price"])
    async with ClientSession() as session:
        async with session.get(url, params={"known": 100}) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        gate.cancel()
        await purgatory.aclose()
        async with session.get(url, params={"known": 100}) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


async def test_what_is_no_price_is_a_400(url: str) -> None:
    async with ClientSession() as session, session.get(url, params={"known": "x"}) as answer:
        assert answer.status == 400
