"""A long poll with aiohttp: a client waits until the price is no longer the one it knows.

    python -m examples.long_poll_aiohttp

The handler awaits an operation, and needs nothing else. With `handler_cancellation=True`, aiohttp cancels
the handler of a client that has left, and this cancels the operation: an operation whose last waiting task is
cancelled leaves the purgatory. When the server stops, aiohttp calls `on_shutdown` before it waits for pending
requests. Closing the purgatory there answers them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientSession, web

from purgatory import DelayedOperation, Purgatory, PurgatoryClosed, PurgatoryFull

MAX_WAIT = 30.0
"""The seconds after which a poll is answered even if the price is still the same."""


class Ticker:
    """The latest price, and the purgatory of the polls that wait for the next one."""

    def __init__(self, purgatory: Purgatory) -> None:
        self.purgatory = purgatory
        self.price = 100

    def trade(self, price: int) -> None:
        self.price = price
        self.purgatory.check_and_complete("price")


class DelayedPrice(DelayedOperation[int]):
    """Waits until the price differs from `known`, and returns the latest one."""

    __slots__ = ("known", "ticker")

    def __init__(self, ticker: Ticker, known: int) -> None:
        super().__init__(MAX_WAIT)
        self.ticker = ticker
        self.known = known

    def try_complete(self) -> bool:
        return self.ticker.price != self.known and self.force_complete()

    def on_complete(self) -> int:
        return self.ticker.price


TICKER = web.AppKey("TICKER", Ticker)


async def get_price(request: web.Request) -> web.Response:
    """``GET /price?known=100`` waits for a price other than 100. Without `known` it answers at once."""
    ticker = request.app[TICKER]
    try:
        known = int(request.query.get("known", -1))
    except ValueError:
        raise web.HTTPBadRequest(text="known must be a whole number") from None
    try:
        operation = ticker.purgatory.try_complete_else_watch(DelayedPrice(ticker, known), ["price"])
    except (PurgatoryFull, PurgatoryClosed):
        raise web.HTTPServiceUnavailable(headers={"Retry-After": "1"}) from None
    return web.json_response({"price": await operation})


def application(ticker: Ticker) -> web.Application:
    async def answer_pending_polls(_: web.Application) -> None:
        await ticker.purgatory.aclose()

    app = web.Application()
    app[TICKER] = ticker
    app.router.add_get("/price", get_price)
    app.on_shutdown.append(answer_pending_polls)
    return app


@asynccontextmanager
async def serve(ticker: Ticker) -> AsyncIterator[str]:
    """Serve on a free port of this machine, and give the URL of the price."""
    # Without handler_cancellation, the poll of a client that has left stays pending until its timeout.
    runner = web.AppRunner(application(ticker), handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/price"
    finally:
        await runner.cleanup()


async def ask(session: ClientSession, url: str, **known: int) -> int:
    async with session.get(url, params=known) as answer:
        return int((await answer.json())["price"])


async def until_pending(purgatory: Purgatory, polls: int) -> None:
    """Wait until so many polls are pending, so that the example prints the same on every machine."""
    while purgatory.statistics().pending != polls:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def main() -> None:
    async with Purgatory("prices", max_pending=10_000) as purgatory, ClientSession() as session:
        ticker = Ticker(purgatory)
        async with serve(ticker) as url:
            print(f"the price is {await ask(session, url)}")

            poll = asyncio.create_task(ask(session, url, known=100))
            await until_pending(purgatory, 1)
            ticker.trade(101)
            print(f"after a trade, the price is {await poll}")

            poll = asyncio.create_task(ask(session, url, known=101))
            await until_pending(purgatory, 1)
            poll.cancel()
            await until_pending(purgatory, 0)
            print(f"the client left; polls cancelled: {purgatory.statistics().cancelled}")

            poll = asyncio.create_task(ask(session, url, known=101))
            await until_pending(purgatory, 1)
        print(f"the server has stopped; its last answer is {await poll}")


if __name__ == "__main__":
    asyncio.run(main())
