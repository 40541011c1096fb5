"""The dashboard's ASGI app: static files and the feed of snapshots, for clients that the host admits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256
from html import escape
from http import HTTPStatus
from importlib.resources import files
from inspect import isawaitable
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from purgatory import Purgatory
from purgatory._figures.figure import Figure
from purgatory._figures.messages import MESSAGE_FIGURES, MessageStore
from purgatory._figures.operations import FIGURES
from purgatory._figures.relay import RELAY_FIGURES, Relaying
from purgatory._figures.stall import StallProbe
from purgatory.web.dashboard.audience import Audience
from purgatory.web.dashboard.feed import LINGER, Feed
from purgatory.web.dashboard.recorder import WINDOW
from purgatory.web.dashboard.search import Search
from purgatory.web.dashboard.shown import Shown

Authorize = Callable[[Scope], bool | Awaitable[bool]]


def _described(figures: Iterable[Figure]) -> list[tuple[str, str, str]]:
    return [(figure.field, figure.title, figure.explanation) for figure in figures]


# By path: the file and its media type.
FILES: Final = {
    "/": ("index.html", "text/html"),
    "/dashboard.css": ("dashboard.css", "text/css"),
    **{
        f"/{module}.js": (f"{module}.js", "text/javascript")
        for module in (
            "dashboard",
            "charts",
            "connection",
            "elements",
            "failures",
            "figures",
            "health",
            "processes",
            "tables",
            "wheel",
        )
    },
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/icon-alarm.svg": ("icon-alarm.svg", "image/svg+xml"),
}

# By the name of a part of the page: the field, the title and the explanation of each figure.
FIGURES_OF: Final = {
    "figure": [
        *_described(FIGURES),
        (
            "oldest_age",
            "Oldest",
            "How long the oldest pending operation has waited. The table of operations shows what it "
            "waits for.",
        ),
        (
            "worst_stall",
            "Worst stall",
            "How late the event loop ran a callback, at worst, in the last minute. A stall of more than a "
            "few milliseconds means that some code blocks the loop.",
        ),
    ],
    "messages": _described(MESSAGE_FIGURES),
    "relay": _described(RELAY_FIGURES),
}

HEADERS: Final = {
    # The page may load its own files only. Its HTML contains no script and no style.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    # A browser asks each time. When it has the same file already, it gets a 304.
    "Cache-Control": "no-cache",
}


def dashboard(
    *purgatories: Purgatory,
    messages: Iterable[MessageStore] = (),
    relays: Iterable[Relaying] = (),
    authorize: Authorize | None = None,
) -> Starlette:
    """An ASGI app that shows `purgatories` live: ``app.mount("/dashboard", dashboard(polls))``.

    After these, the app shows the purgatory of each DelayedMessages in `messages`, with the figures of the
    store. It shows the figures of each Relay in `relays` with the purgatory of the relay.

    The app changes nothing, and is open to every client that reaches it, unless `authorize` is given. The app
    calls `authorize` with the ASGI scope of each request. It may be async. When it returns False, the
    response is 403. It may raise Starlette's HTTPException for another response, such as 401 or a redirect to
    a login page.

    The app observes the purgatories from now on. Make it before the purgatories hold operations, because it
    does not know for how long earlier operations have waited. While a page is open, the loop takes one
    snapshot a second, in a few milliseconds (`python -m benchmarks dashboard`). While no page is open,
    nothing runs.

    Raises ValueError when no purgatory is given, for two purgatories of the same name, because the name is a
    purgatory's address, and for a relay whose purgatory is not shown.
    """
    stores = [None] * len(purgatories) + list(messages)
    purgatories += tuple(store.purgatory for store in stores if store is not None)
    if not purgatories:
        raise ValueError("dashboard() needs at least one purgatory to show")
    for name, many in Counter(purgatory.name for purgatory in purgatories).items():
        if many > 1:
            raise ValueError(f"{many} purgatories have the name {name!r}: give each a name of its own")
    relay_of = {relay.purgatory: relay for relay in relays}
    for purgatory in relay_of.keys() - set(purgatories):
        raise ValueError(f"{relay_of[purgatory]!r} has no place: pass its purgatory to dashboard(), too")
    everything = [
        Shown(purgatory, store, relay_of.get(purgatory))
        for purgatory, store in zip(purgatories, stores, strict=True)
    ]
    audience, stalls = Audience(), StallProbe(WINDOW, LINGER)
    feeds = {shown.purgatory.name: Feed(everything, shown, audience, stalls) for shown in everything}

    async def data(request: Request) -> Response:
        parameters = request.query_params
        feed = feeds.get(parameters.get("purgatory", purgatories[0].name))
        if feed is None:
            return JSONResponse({"purgatories": list(feeds)}, HTTPStatus.NOT_FOUND)
        try:
            search = Search.of(parameters)
        except ValueError as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from None
        snapshot = await feed.after(request, parameters.get("version"), search)
        return Response(snapshot, media_type="application/json", headers={"Cache-Control": "no-store"})

    routes = [*(_file(path, *file) for path, file in FILES.items()), Route("/data", data)]
    guards = [] if authorize is None else [Middleware(Authorization, authorize=authorize)]
    return Starlette(
        routes=[Mount("/", routes=routes, middleware=guards)],
        # A snapshot is compressed for each viewer on the event loop, so the level is low.
        middleware=[Middleware(StrictHeaders), Middleware(GZipMiddleware, compresslevel=3)],
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
    """Puts `HEADERS` on every response, except those that the response has set."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _file(path: str, name: str, media_type: str) -> Route:
    content = files(__package__).joinpath("static", name).read_bytes()
    content = re.sub(rb"<!-- (\w+) (\w+)(?: (\w+))? -->", _cards, content)
    etag = f'"{sha256(content).hexdigest()[:16]}"'

    async def file(request: Request) -> Response:
        known = request.headers.get("if-none-match", "")
        if etag in known:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag})
        return Response(content, media_type=media_type, headers={"ETag": etag})

    return Route(path, file, name=name)


def _cards(mark: re.Match[bytes]) -> bytes:
    """The cards of the page for a figure, or for all figures of a part. The page's script fills them in.

    The third word of a mark is the part of the page that shows more of this figure.
    """
    part, wanted, target = (word.decode() for word in mark.groups(b""))
    figures = [figure for figure in FIGURES_OF[part] if wanted in (figure[0], "all")]
    return "\n      ".join(_card(part, *figure, target) for figure in figures).encode()


def _card(part: str, field: str, title: str, explanation: str, target: str) -> str:
    id = field if part == "figure" else f"{part}-{field}"
    described = f'aria-describedby="about-{id}"'
    named = (
        f'<a href="#{target}-part" {described}>{title}</a>' if target else f"<span {described}>{title}</span>"
    )
    value = f'<span class="value" id="{id}">&ndash;</span> <span class="more" id="more-{id}"></span>'
    about = f'<span class="about" id="about-{id}">{escape(explanation)}</span>'
    return f'<div class="card" id="card-{id}"><dt>{named}</dt><dd>{value}{about}</dd></div>'
