"""Heartbeats, and who is online by long poll."""

from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Path, Query, Request, Response

from examples.longpoll.conditional import answer, client_has
from examples.longpoll.models import BUSY, NOT_MODIFIED, Beat, WhoIsOnline
from examples.longpoll.presence import PRESENCE_KEY, DelayedOnline
from examples.longpoll.service import Service
from purgatory import PurgatoryFull
from purgatory.web import long_poll

Name = Annotated[
    str,
    Path(
        pattern=r"^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_ .'-]{0,31}$",
        description="Anything short; nobody checks whose it is.",
    ),
]


def presence_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["presence"])
    presence, polls, limits = service.presence, service.polls, service.limits

    @routes.post("/presence/{name}", responses={503: BUSY})
    async def beat(name: Name) -> Beat:
        """Be online until `timeout` seconds from now."""
        try:
            presence.beat(name)
        except PurgatoryFull as error:
            raise HTTPException(503, "too many are online", {"Retry-After": "1"}) from error
        return Beat(name=name, timeout=presence.timeout)

    @routes.delete("/presence/{name}", status_code=204)
    async def leave(name: Name) -> None:
        """Be offline."""
        presence.leave(name)

    @routes.get("/presence", response_model=WhoIsOnline, responses={304: NOT_MODIFIED, 503: BUSY})
    async def online(
        request: Request,
        version: Annotated[str | None, Query(max_length=64, description="As it was answered before.")] = None,
        wait: Annotated[
            float,
            Query(ge=0, le=limits.wait, allow_inf_nan=False, description="For so many seconds at most."),
        ] = 0.0,
        if_none_match: Annotated[str | None, Header(description="Wait for another version.")] = None,
    ) -> Response:
        """Who is online: as soon as it is not what it was at `version`, or when the wait is over."""
        if client_has(request, presence.now.etag):
            version = presence.now.version
        online = await long_poll(request, polls, DelayedOnline(presence, version, wait), [PRESENCE_KEY])
        return answer(request, online.json, online.etag)

    return routes
