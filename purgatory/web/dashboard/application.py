"""The dashboard's ASGI app: static files and the feed of snapshots, for clients that the host admits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
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
from purgatory._message_statistics import MessageStore
from purgatory._relay_statistics import Relaying
from purgatory._statistics import FIGURES
from purgatory.web.dashboard.audience import Audience
from purgatory.web.dashboard.feed import Feed

Authorize = Callable[[Scope], bool | Awaitable[bool]]

# By path: the file and its media type.
FILES: Final = {
    "/": ("index.html", "text/html"),
    "/dashboard.css": ("dashboard.css", "text/css"),
    **{
        f"/{module}.js": (f"{module}.js", "text/javascript")
        for module in ("dashboard", "charts", "elements", "tables", "wheel")
    },
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}

HEADERS: Final = {
    # The page may load its own files only, and contains no script or style itself.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def dashboard(
    *purgatories: Purgatory,
    messages: Iterable[MessageStore] = (),
    relays: Iterable[Relaying] = (),
    authorize: Authorize | None = None,
) -> Starlette:
    """An ASGI app that shows `purgatories` live: ``app.mount("/dashboard", dashboard(polls))``.

    After these, the app shows the purgatory of each DelayedMessages in `messages`, with the figures of the
    store. A purgatory whose Relay is in `relays` is shown with the figures of the relay.

    It is read-only, and open to every client that reaches it, unless `authorize` is given. That is called
    with the ASGI scope of each request, and may be async. When it returns False, the response is 403. It may
    also raise Starlette's HTTPException for another response, such as 401 or a redirect to a login page.

    The app observes the purgatories from now on. Make it before they hold operations, because it does not
    know for how long earlier ones have waited. While a page is open, the loop takes one snapshot a second, in
    a few milliseconds (`python -m benchmarks dashboard`). While no page is open, nothing runs.

    Raises ValueError when no purgatory is given, and for a relay whose purgatory is not shown.
    """
    stores = [None] * len(purgatories) + list(messages)
    purgatories += tuple(store.purgatory for store in stores if store is not None)
    if not purgatories:
        raise ValueError("dashboard() needs at least one purgatory to show")
    relay_of = {relay.purgatory: relay for relay in relays}
    for purgatory in relay_of.keys() - set(purgatories):
        raise ValueError(f"{relay_of[purgatory]!r} has no place: pass its purgatory to dashboard(), too")
    audience = Audience()
    feeds = [
        Feed(purgatories, shown, store, relay_of.get(shown), audience)
        for shown, store in zip(purgatories, stores, strict=True)
    ]

    async def data(request: Request) -> Response:
        shown = _number(request, "purgatory") or 0
        if not 0 <= shown < len(feeds):
            raise HTTPException(HTTPStatus.NOT_FOUND, f"there is no purgatory number {shown}")
        snapshot = await feeds[shown].after(request, _number(request, "version"))
        return Response(snapshot, media_type="application/json")

    routes = [*(_file(path, *file) for path, file in FILES.items()), Route("/data", data)]
    guards = [] if authorize is None else [Middleware(Authorization, authorize=authorize)]
    return Starlette(
        routes=[Mount("/", routes=routes, middleware=guards)], middleware=[Middleware(StrictHeaders)]
    )


class Authorization:
    """Refuses the requests that the host does not authorize."""

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
    content = content.replace(b"<!-- figures -->", _figures().encode())

    async def file(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return Route(path, file, name=name)


def _figures() -> str:
    """The page's elements for the fields of `PurgatoryStatistics`, which the script fills in."""
    return "\n      ".join(
        f'<div class="{figure.field}"><dt>{figure.title}</dt><dd id="{figure.field}">&ndash;</dd></div>'
        for figure in FIGURES
    )


def _number(request: Request, name: str) -> int | None:
    """The query parameter `name`, or None when it is missing."""
    given = request.query_params.get(name)
    try:
        return None if given is None else int(given)
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{name} must be a whole number") from None
