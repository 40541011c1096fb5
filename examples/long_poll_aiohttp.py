"""A long poll with aiohttp: "what is the price, when it is no longer the one I know?"

    python -m examples.long_poll_aiohttp

aiohttp cancels the handler of a client that has left, when asked to, and a cancelled task withdraws the
operation that it alone awaits. So the handler just awaits it. When the server stops, `on_shutdown` comes
before it waits for its requests: closing the purgatory there answers them.
"""

from __future__ import annotations

import anyio
from aiohttp import ClientSession, web

from examples.event_loop import run
from purgatory import DelayedOperation, Purgatory, PurgatoryClosed, PurgatoryFull

RETRY_AFTER = {"Retry-After": "1"}


class Ticker:
    """The latest price, and those who wait for another one."""

    def __init__(self, purgatory: Purgatory) -> None:
        self.purgatory = purgatory
        self.price = 100

    def trade(self, price: int) -> None:
        self.price = price
        self.purgatory.check_and_complete("price")


class DelayedPrice(DelayedOperation[int]):
    """Waits until the price is not the one that is known; gives the latest one."""

    def __init__(self, ticker: Ticker, known: int, wait: float) -> None:
        super().__init__(wait)
        self.ticker = ticker
        self.known = known

    def try_complete(self) -> bool:
        return self.ticker.price != self.known and self.force_complete()

    def on_complete(self) -> int:
        return self.ticker.price


TICKER = web.AppKey("TICKER", Ticker)


async def price(request: web.Request) -> web.Response:
    """``GET /price?known=100``: waits for another one, for 30 seconds at most."""
    ticker = request.app[TICKER]
    try:
        known = int(request.query.get("known", -1))
    except ValueError:
        raise web.HTTPBadRequest(text="known must be a whole number") from None
    try:
        operation = ticker.purgatory.try_complete_else_watch(DelayedPrice(ticker, known, 30.0), ["price"])
    except (PurgatoryFull, PurgatoryClosed):
        raise web.HTTPServiceUnavailable(headers=RETRY_AFTER) from None
    return web.json_response({"price": await operation})


def application(ticker: Ticker) -> web.Application:
    async def answer_all(_: web.Application) -> None:
        await ticker.purgatory.aclose()

    app = web.Application()
    app[TICKER] = ticker
    app.router.add_get("/price", price)
    app.on_shutdown.append(answer_all)
    return app


async def watch(session: ClientSession, url: str, seen: list[int]) -> None:
    """Follows the price until an answer brings no other one."""
    while len(seen) < 2 or seen[-1] != seen[-2]:
        async with session.get(url, params={"known": seen[-1]} if seen else {}) as answer:
            seen.append((await answer.json())["price"])
            print(f"the price is {seen[-1]}")


async def main() -> list[int]:
    seen: list[int] = []
    async with Purgatory("prices", max_pending=10_000) as purgatory:
        ticker = Ticker(purgatory)
        # Without handler_cancellation, what a client waited for that has left stays until its timeout.
        runner = web.AppRunner(application(ticker), handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/price"
        async with ClientSession() as session, anyio.create_task_group() as task_group:
            task_group.start_soon(watch, session, url, seen)
            for traded in (101, 99):
                await anyio.sleep(0.1)
                ticker.trade(traded)
            with anyio.move_on_after(0.1):
                await session.get(url, params={"known": 99})
            await anyio.sleep(0.1)
            print(f"{purgatory.statistics().cancelled} client has left; the server stops")
            await runner.cleanup()
    return seen


if __name__ == "__main__":
    run(main)
