"""The service as an ASGI application: the API, the chat page, the dashboard and the metrics."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files
from pathlib import PurePath
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.routing import BaseRoute, Match

from examples.longpoll.admission import Admission
from examples.longpoll.connection import connection_state
from examples.longpoll.news_routes import news_routes
from examples.longpoll.presence_routes import presence_routes
from examples.longpoll.service import Service
from examples.longpoll.store import StoreUnavailable
from examples.longpoll.topic_routes import topic_routes
from purgatory.metrics import RelayCollector
from purgatory.web import dashboard

logger: Final = logging.getLogger("examples.longpoll")

METHODS: Final = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

MEDIA_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
"""The kinds of files in the directory `page`."""

CHAT_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def application(service: Service, hosts: Collection[str] = ()) -> FastAPI:
    """Serve `service` over HTTP, under the names of this machine and those in `hosts`.

    The application's lifespan runs the service, and so can begin only once.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        async with service.running():
            yield connection_state(service.limits, service.connections)

    # FastAPI's documentation pages load scripts from a CDN, so they are off.
    app = FastAPI(
        title="Topics",
        version="1",
        summary="Logs that are read by long poll.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(topic_routes(service))
    app.include_router(presence_routes(service))
    app.include_router(news_routes(service))
    app.include_router(_metrics_routes(service))
    app.include_router(_chat_routes())
    app.mount("/dashboard", dashboard(*service.purgatories, relays=service.relays))
    app.add_middleware(Admission, hosts=hosts)
    app.add_exception_handler(StoreUnavailable, _store_unavailable)
    app.add_exception_handler(HTTPStatus.METHOD_NOT_ALLOWED, _method_not_allowed)
    return app


async def _store_unavailable(request: Request, error: Exception) -> Response:
    logger.warning("%s %s fails: %s", request.method, request.url.path, error)
    return JSONResponse({"detail": "the store cannot be reached"}, 503, {"Retry-After": "1"})


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    """Name all methods of the path. FastAPI names the methods of its first route only."""
    routes: list[BaseRoute] = request.app.routes
    allowed = [
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return JSONResponse({"detail": "Method Not Allowed"}, 405, {"Allow": ", ".join(allowed)})


def _metrics_routes(service: Service) -> APIRouter:
    registry = CollectorRegistry()
    registry.register(service.collector)
    registry.register(RelayCollector(*service.relays))
    routes = APIRouter(include_in_schema=False)

    @routes.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return routes


def _chat_routes() -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    for file in files("examples.longpoll").joinpath("page").iterdir():
        path = "/" if file.name == "index.html" else f"/{file.name}"
        media_type = MEDIA_TYPES[PurePath(file.name).suffix]
        routes.add_api_route(path, _file_endpoint(file.read_bytes(), media_type))
    return routes


def _file_endpoint(content: bytes, media_type: str) -> Any:
    async def file() -> Response:
        return Response(content, media_type=media_type, headers=CHAT_HEADERS)

    return file
