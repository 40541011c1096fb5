"""The dashboard's ASGI app: three files and a feed, for those whom the host lets in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from importlib.resources import files
from inspect import isawaitable
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from purgatory import Purgatory
from purgatory.web.dashboard.audience import Audience
from purgatory.web.dashboard.feed import Feed

Authorize = Callable[[Scope], bool | Awaitable[bool]]

# By path.
FILES: Final = {
    "/": ("index.html", "text/html"),
    "/dashboard.css": ("dashboard.css", "text/css"),
    "/dashboard.js": ("dashboard.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}

HEADERS: Final = {
    # Its own files and nothing else, and no script or style within the page.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def dashboard(*purgatories: Purgatory, authorize: Authorize | None = None) -> Starlette:
    """An ASGI app that shows what `purgatories` do: ``app.mount("/dashboard", dashboard(polls))``.

    It is read-only, and open to everybody who reaches it, unless `authorize` is given. That is called with
    the scope of each request, and may be async: where it returns False the answer is 403; or it raises
    Starlette's HTTPException for an answer of the host's own, such as 401 or a redirect to its login.

    From here on the purgatories are observed, which costs them half a microsecond an operation; make it
    before they hold any, or of those it is not known since when they wait. While somebody looks, there is
    one snapshot a second, a few milliseconds of the loop's time. While nobody does, nothing runs.

    Raises ValueError when there is no purgatory to show.
    """
    if not purgatories:
        raise ValueError("a dashboard needs a purgatory to show")
    audience = Audience()
    feeds = [Feed(purgatories, shown, audience) for shown in purgatories]

    async def data(request: Request) -> Response:
        shown = _number(request, "purgatory") or 0
        if not 0 <= shown < len(feeds):
            raise HTTPException(HTTPStatus.NOT_FOUND, f"there is no purgatory {shown}")
        snapshot = await feeds[shown].after(request, _number(request, "version"))
        return Response(snapshot, media_type="application/json")

    routes = [*(_file(path, *file) for path, file in FILES.items()), Route("/data", data)]
    guards = [] if authorize is None else [Middleware(Authorization, authorize=authorize)]
    return Starlette(
        routes=[Mount("/", routes=routes, middleware=guards)], middleware=[Middleware(StrictHeaders)]
    )


class Authorization:
    """Asks the host whether a request may go on."""

    def __init__(self, app: ASGIApp, authorize: Authorize) -> None:
        self._app = app
        self._authorize = authorize

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = self._authorize(scope)
        if isawaitable(allowed):
            allowed = await allowed
        if not allowed:
            raise HTTPException(HTTPStatus.FORBIDDEN)
        await self._app(scope, receive, send)


class StrictHeaders:
    """Puts `HEADERS` on every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _file(path: str, name: str, media_type: str) -> Route:
    content = files(__package__).joinpath("static", name).read_bytes()

    async def file(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return Route(path, file, name=name)


def _number(request: Request, name: str) -> int | None:
    """The query's parameter `name`; None where it is missing."""
    given = request.query_params.get(name)
    try:
        return None if given is None else int(given)
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{name} must be a whole number") from None
