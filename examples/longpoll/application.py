"""The service as an ASGI application: the API, the chat page and the dashboard."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, StringConstraints

from examples.longpoll.memory_store import MemoryStore
from examples.longpoll.news import DelayedNews
from examples.longpoll.postgres_store import PostgresStore
from examples.longpoll.service import Service
from examples.longpoll.store import NOWHERE, PEOPLE_KEY, SESSION_TIMEOUT, StoreUnavailable, TooManyTopics
from purgatory import PurgatoryFull
from purgatory.web import Position, dashboard, long_poll, resumable

POSTGRES: Final = "LONGPOLL_POSTGRES"
"""The environment variable with the DSN of the store. Without it, records are kept in memory."""

LONGEST_WAIT: Final = 25.0
"""The longest wait of a poll, in seconds. Proxies give up on an answer after 30 or 60."""

LARGEST_BODY: Final = 16 * 1024
"""The bytes of a request's body. A longer one gets a 413."""

PAGE: Final = Path(__file__).with_name("page")

logger: Final = logging.getLogger("examples.longpoll")

Topic = Annotated[str, PathParameter(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
NAME: Final = r"^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_ .'-]{0,31}$"
Name = Annotated[str, PathParameter(pattern=NAME)]


class Message(BaseModel):
    """What somebody says. The service does not check who uses a name."""

    name: Annotated[str, StringConstraints(pattern=NAME)]
    text: Annotated[str, StringConstraints(min_length=1, max_length=2_000)]


def create_app() -> FastAPI:
    """The application of one worker. Called in each, after the fork."""
    dsn = os.environ.get(POSTGRES)
    return application(Service(PostgresStore(dsn) if dsn else MemoryStore()))


def application(service: Service) -> FastAPI:
    """Serve `service` over HTTP. The application's lifespan runs the service, and so can begin only once."""
    topics, presence = service.topics, service.presence

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    # FastAPI's documentation pages load scripts from a CDN, so they are off.
    app = FastAPI(
        title="Topics", lifespan=lifespan, docs_url=None, redoc_url=None, max_body_size=LARGEST_BODY
    )

    @app.post("/topics/{topic}", status_code=201)
    async def append(topic: Topic, message: Message) -> int:
        """Append a record, answer the polls that wait for it, and return its offset."""
        record = {**message.model_dump(), "at": datetime.now(UTC).isoformat(timespec="seconds")}
        try:
            return await topics.append(topic, json.dumps(record).encode())
        except TooManyTopics as error:
            raise HTTPException(403, str(error)) from error

    @app.get("/topics/{topic}")
    async def read(
        request: Request,
        topic: Topic,
        after: Annotated[str, Query(description="Where the last answer ended.")] = str(NOWHERE),
        people: Annotated[str | None, Query(max_length=64, description="The last version of people.")] = None,
        wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds.")] = 0,
    ) -> Response:
        """Return the records behind `after` as soon as there are any, or after `wait` seconds.

        With `people`, which is empty the first time, it also waits for a change of who is online. To follow a
        topic, request the Link with rel=next of each answer.
        """
        position = Position.parse(after)
        # A poll that waits hears of what other workers do. What it would answer now may be old.
        if not wait or position == NOWHERE or topics.log(topic).offset_of(position) is None:
            await topics.load([topic])
        if people is not None and not (wait and people == presence.now.version):
            await presence.load()
        operation = DelayedNews(topics, presence, topic, position, people, wait)
        keys = [topic] if people is None else [topic, PEOPLE_KEY]
        news = await long_poll(request, service.polls, operation, keys)
        if news is None:
            raise HTTPException(410, "these records are gone; ask again without a position")
        version = {} if people is None else {"people": news.people.version if news.people else people}
        answer = Response(news.json(), media_type="application/json")
        return resumable(request, answer, news.tag, after=news.after, **version)

    @app.post("/presence/{name}")
    async def heartbeat(name: Name) -> float:
        """Be online, and return for how many seconds. The next heartbeat is due before they are over."""
        try:
            await presence.heartbeat(name)
        except PurgatoryFull as error:
            raise HTTPException(503, "too many people are online", {"Retry-After": "1"}) from error
        return SESSION_TIMEOUT

    @app.delete("/presence/{name}", status_code=204)
    async def leave(name: Name) -> None:
        """Be offline at once."""
        await presence.leave(name)

    @app.get("/", include_in_schema=False)
    async def chat() -> Response:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE))
    app.mount("/dashboard", dashboard(service.polls, service.sessions, relays=[service.relay]))
    app.add_exception_handler(StoreUnavailable, _store_unavailable)
    app.add_exception_handler(RequestValidationError, _not_valid)
    return app


async def _store_unavailable(request: Request, error: Exception) -> Response:
    logger.warning("%s %s fails: %s", request.method, request.url.path, error)
    return JSONResponse({"detail": "the store cannot be reached"}, 503, {"Retry-After": "1"})


async def _not_valid(request: Request, error: Exception) -> Response:
    """Name the reasons. FastAPI's own answer repeats the input, which need not be text that can be sent."""
    assert isinstance(error, RequestValidationError)
    return JSONResponse(
        {"detail": "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors())}, 422
    )
