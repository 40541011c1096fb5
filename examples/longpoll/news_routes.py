"""The HTTP route of news: one long poll for everything that a client follows."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import StringConstraints

from examples.longpoll.models import BUSY, WhatIsNew, problem
from examples.longpoll.news import DelayedNews, Known
from examples.longpoll.service import Service
from examples.longpoll.topic_log import NOWHERE
from purgatory.web import Position, long_poll

Followed = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(:[A-Za-z0-9-]{1,64}:[0-9]{1,15})?$")
]


def news_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["news"])
    topics, presence, polls, limits = service.topics, service.presence, service.polls, service.limits

    @routes.get(
        "/news", response_model=WhatIsNew, responses={400: problem("The request follows nothing."), 503: BUSY}
    )
    async def news(
        request: Request,
        follow: Annotated[
            list[Followed],
            Query(
                default_factory=list,
                max_length=limits.followed,
                description="A topic, from its oldest record on. Or a position in a topic, from the last "
                "response: `topic:log:next`. May be given several times.",
            ),
        ],
        online: Annotated[
            str | None,
            Query(
                max_length=64, description="The version of who is online. Empty to ask for the first time."
            ),
        ] = None,
        topic_list: Annotated[
            str | None,
            Query(alias="topics", max_length=64, description="The version of the list of topics, likewise."),
        ] = None,
        wait: Annotated[
            float,
            Query(ge=0, le=limits.wait, allow_inf_nan=False, description="The longest wait, in seconds."),
        ] = 0.0,
    ) -> Response:
        """Return all news of what is followed, as soon as there is any, or after `wait` seconds.

        A page with another `log` or `offset` than was asked for begins with the oldest record: the records
        before it are gone.
        """
        positions = tuple(map(_position, follow))
        known = Known(positions, online, topic_list)
        if not (follow or online is not None or topic_list is not None):
            raise HTTPException(
                400, "this follows nothing; name a topic to follow, or give online= or topics="
            )
        # Another process may know more. A poll that waits hears of it.
        unknown = {topic for topic, position in positions if not (wait and topics.log(topic).has(position))}
        if unknown:
            await topics.load(unknown)
        if online is not None and not (wait and online == presence.now.version):
            await presence.latest()
        if topic_list is not None and not (wait and topic_list == topics.names.version):
            await topics.load_names()
        operation = DelayedNews(topics, presence, known, limits, wait)
        found = await long_poll(request, polls, operation, known.keys())
        return Response(found.json(), headers={"Cache-Control": "no-store"}, media_type="application/json")

    return routes


def _position(text: str) -> tuple[str, Position]:
    topic, _, position = text.partition(":")
    return topic, Position.parse(position) if position else NOWHERE
