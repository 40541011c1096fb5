"""A server with the dashboard, in a thread and on a loop of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from purgatory import Purgatory
from purgatory.web.dashboard import dashboard

T = TypeVar("T")


class Host(uvicorn.Server):
    """Serves the dashboard of two purgatories under /inside while its thread runs.

    Requests for /later are answered once `later` is set.
    """

    def __init__(self) -> None:
        self.first, self.second = Purgatory("first"), Purgatory("<b>second</b>")
        self.later = asyncio.Event()
        page = dashboard(self.first, self.second)
        app = Starlette(routes=[Mount("/inside", page), Route("/later", self.answer_later)])
        super().__init__(uvicorn.Config(app, log_level="error", lifespan="off"))
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.up: Future[asyncio.AbstractEventLoop] = Future()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}/inside/"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set_result(asyncio.get_running_loop())

    async def answer_later(self, request: Request) -> Response:
        await self.later.wait()
        return Response()

    def run_in_thread(self) -> None:
        async def run() -> None:
            async with self.first, self.second:
                await self.serve([self.socket])

        asyncio.run(run())

    def on_loop(self, act: Callable[[], T]) -> T:
        """Call `act` on the server's loop and return its result."""

        async def acted() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(acted(), self.up.result(10)).result(10)
