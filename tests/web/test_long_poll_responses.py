"""Starlette and FastAPI answer the exceptions of a long poll."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi import Request as FastAPIRequest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from purgatory import Purgatory, PurgatoryClosed, PurgatoryFull
from purgatory.errors import PurgatoryNotOpen
from purgatory.web import ClientDisconnected, long_poll
from tests.operations import Gate, raising
from tests.web.poll_client import DISCONNECT, REQUEST, Client, parked


async def test_a_purgatory_that_was_never_started_is_an_error_of_the_server() -> None:
    with pytest.raises(PurgatoryNotOpen, match="start"):
        await long_poll(Request({"type": "http"}, Client().receive), Purgatory(), Gate(), ["key"])


@pytest.mark.parametrize("error", [PurgatoryFull("another"), PurgatoryClosed("another")])
async def test_errors_of_other_purgatories_that_a_hook_raises_are_raised_unchanged(
    purgatory: Purgatory, error: Exception
) -> None:
    with pytest.raises(type(error), match="another"):
        await long_poll(
            Request({"type": "http"}, Client().receive), purgatory, Gate(trying=raising(error)), ["key"]
        )


async def test_a_disconnection_is_an_exception_that_starlette_handles() -> None:
    async with Purgatory() as purgatory:
        with pytest.raises(HTTPException) as raised:
            await long_poll(Request({"type": "http"}, Client(DISCONNECT).receive), purgatory, Gate(), ["key"])
    assert raised.value.status_code == 499
    assert isinstance(raised.value.__cause__, ClientDisconnected)


def starlette_app(purgatory: Purgatory) -> Starlette:
    async def topic(request: Request) -> Response:
        return PlainTextResponse(await long_poll(request, purgatory, Gate(0.01, "nothing"), ["key"]))

    async def pass_on(request: Request, call_next: Any) -> Any:
        return await call_next(request)

    return Starlette(
        routes=[Route("/", topic)], middleware=[Middleware(BaseHTTPMiddleware, dispatch=pass_on)]
    )


def fastapi_app(purgatory: Purgatory) -> FastAPI:
    app = FastAPI()

    @app.get("/")
    async def topic(request: FastAPIRequest) -> PlainTextResponse:
        return PlainTextResponse(await long_poll(request, purgatory, Gate(0.01, "nothing"), ["key"]))

    return app


@pytest.mark.parametrize("application", [starlette_app, fastapi_app])
async def test_a_refused_poll_is_a_503_with_retry_after(application: Any) -> None:
    async with Purgatory(max_pending=1) as purgatory:
        transport = httpx.ASGITransport(application(purgatory))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            answered = await client.get("/")
            assert (answered.status_code, answered.text) == (200, "nothing")
            gate = purgatory.try_complete_else_watch(Gate(), ["key"])
            full = await client.get("/")
            assert (full.status_code, full.headers["Retry-After"]) == (503, "1")
            gate.cancel()
            await purgatory.aclose()
            closed = await client.get("/")
            assert (closed.status_code, closed.headers["Retry-After"]) == (503, "1")


async def test_a_poll_withdrawn_by_others_is_a_503(purgatory: Purgatory) -> None:
    client = Client(REQUEST)
    task = asyncio.create_task(
        long_poll(Request({"type": "http"}, client.receive), purgatory, Gate(), ["key"])
    )
    await parked(purgatory, client)
    purgatory.cancel_for_key("key")
    with pytest.raises(HTTPException) as raised:
        await task
    assert raised.value.status_code == 503
