"""The aiohttp example answers with each new price, and cancels the polls of clients that leave."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import ClientSession

from examples import long_poll_aiohttp
from examples.long_poll_aiohttp import Ticker, serve
from purgatory import Purgatory
from tests.operations import Gate

# A server and its client in one process: sockets need a loop in real time, but nothing here measures it.
pytestmark = pytest.mark.real_time

PRINTED = """\
the price is 100
after a trade, the price is 101
the client left; polls cancelled: 1
the server has stopped; its last answer is 101
"""


async def test_the_example_prints_exactly_these_lines(capsys: pytest.CaptureFixture[str]) -> None:
    await long_poll_aiohttp.main()

    assert capsys.readouterr().out == PRINTED


@pytest_asyncio.fixture
async def purgatory() -> AsyncIterator[Purgatory]:
    async with Purgatory(max_pending=1) as purgatory:
        yield purgatory


@pytest_asyncio.fixture
async def url(purgatory: Purgatory) -> AsyncIterator[str]:
    async with serve(Ticker(purgatory)) as url:
        yield url


async def test_a_poll_is_a_503_with_retry_after_while_the_purgatory_is_full_or_closed(
    purgatory: Purgatory, url: str
) -> None:
    purgatory.try_complete_else_watch(Gate(), ["price"])
    async with ClientSession() as session:
        async with session.get(url, params={"known": 100}) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        await purgatory.aclose()
        async with session.get(url, params={"known": 100}) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


async def test_a_known_price_that_is_no_number_is_a_400(url: str) -> None:
    async with ClientSession() as session, session.get(url, params={"known": "x"}) as answer:
        assert answer.status == 400
