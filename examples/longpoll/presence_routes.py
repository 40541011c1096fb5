"""The HTTP routes of presence: heartbeats, and a long poll for who is online."""

from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Path, Query, Request, Response

from examples.longpoll.conditional import json_or_not_modified
from examples.longpoll.models import BUSY, NOT_MODIFIED, Heartbeat, WhoIsOnline
from examples.longpoll.presence import PRESENCE_KEY, DelayedOnline
from examples.longpoll.service import Service
from purgatory import PurgatoryFull
from purgatory.web import client_has, long_poll

Name = Annotated[
    str,
    Path(
        pattern=r"^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_ .'-]{0,31}$",
        description="A name of up to 32 characters. The service does not check who uses it.",
    ),
]


def presence_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["presence"])
    presence, polls, limits = service.presence, service.polls, service.limits

    @routes.post("/presence/{name}", responses={503: BUSY})
    async def heartbeat(name: Name) -> Heartbeat:
        """Be online for another `timeout` seconds."""
        try:
            await presence.heartbeat(name)
        except PurgatoryFull as error:
            raise HTTPException(503, "too many people are online", {"Retry-After": "1"}) from error
        return Heartbeat(name=name, timeout=presence.timeout)

    @routes.delete("/presence/{name}", status_code=204)
    async def leave(name: Name) -> None:
        """Be offline at once."""
        await presence.leave(name)

    @routes.get("/presence", response_model=WhoIsOnline, responses={304: NOT_MODIFIED, 503: BUSY})
    async def online(
        request: Request,
        version: Annotated[
            str | None,
            Query(max_length=64, description="The version of the last response: wait for another one."),
        ] = None,
        wait: Annotated[
            float,
            Query(ge=0, le=limits.wait, allow_inf_nan=False, description="The longest wait, in seconds."),
        ] = 0.0,
        if_none_match: Annotated[
            str | None, Header(description="The entity tag of the last response: wait for another one.")
        ] = None,
    ) -> Response:
        """Return who is online, as soon as it has changed since `version`, or after `wait` seconds."""
        now = presence.now
        if not wait or not (version == now.version or client_has(request, now.etag)):
            # Another process may know more. A poll that waits hears of it.
            now = await presence.latest()
        if client_has(request, now.etag):
            version = now.version
        online = await long_poll(request, polls, DelayedOnline(presence, version, wait), [PRESENCE_KEY])
        return json_or_not_modified(request, online.json("online"), online.etag)

    return routes
