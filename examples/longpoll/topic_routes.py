"""Recording, and reading by long poll."""

import json
from typing import Annotated, Any, NoReturn

from fastapi import APIRouter, Header, HTTPException, Path, Query, Request, Response
from starlette.requests import ClientDisconnect

from examples.longpoll.conditional import answer, client_has
from examples.longpoll.models import BUSY, NOT_MODIFIED, Recorded, Records, problem
from examples.longpoll.service import Service
from examples.longpoll.topics import DelayedRead, TooManyTopics, key_of
from purgatory.web import long_poll

MAX_OFFSET = 2**53 - 1
"""What every client's JSON can hold exactly."""

Topic = Annotated[
    str, Path(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Begins with its first record.")
]

RECORD: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/json": {"schema": {}}}}}


def topic_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["topics"])
    topics, polls, limits = service.topics, service.polls, service.limits

    @routes.post(
        "/topics/{topic}",
        status_code=201,
        openapi_extra=RECORD,
        responses={
            400: problem("The body is no JSON, or has not arrived."),
            403: problem("There are as many topics as there may be."),
            413: problem(f"The record has more than {limits.record_bytes} bytes."),
            415: problem("The body is not application/json."),
        },
    )
    async def record(topic: Topic, request: Request) -> Recorded:
        """Append a record, which is any JSON, and answer whoever waits for it."""
        record = await _record_in(request, limits.record_bytes)
        try:
            return Recorded(topic=topic, offset=await topics.append(topic, record))
        except TooManyTopics as error:
            raise HTTPException(403, str(error)) from error

    @routes.get(
        "/topics/{topic}",
        response_model=Records,
        responses={
            304: NOT_MODIFIED,
            404: problem("There is no such offset yet."),
            410: problem("The records there have been dropped, or the service was started anew."),
            503: BUSY,
        },
    )
    async def read(
        topic: Topic,
        request: Request,
        offset: Annotated[
            int | None, Query(ge=0, le=MAX_OFFSET, description="Where to begin; the oldest record if absent.")
        ] = None,
        least: Annotated[
            int, Query(alias="min", ge=1, le=limits.answer_records, description="Wait for so many records.")
        ] = 1,
        wait: Annotated[
            float,
            Query(ge=0, le=limits.wait, allow_inf_nan=False, description="For so many seconds at most."),
        ] = 0.0,
        log: Annotated[str | None, Query(max_length=64, description="As it was answered before.")] = None,
        if_none_match: Annotated[str | None, Header(description="Wait for other records than these.")] = None,
    ) -> Response:
        """The records from an offset on: as soon as there are enough, or what there is when the wait is over.

        To follow a topic, ask for what the Link with rel=next names, again and again.
        """
        known = topics.log(topic)
        if log not in (None, known.id):
            _gone(known.start, known.end)
        if offset is None:
            offset = known.start
        if offset > known.end:
            raise HTTPException(404, f"there is no offset {offset} yet; the next one is {known.end}")
        end = offset
        if offset >= known.start and client_has(request, known.read(offset).etag):
            end = known.end
        operation = DelayedRead(topics, topic, offset, end + least, wait)
        page = await long_poll(request, polls, operation, [key_of(topic)])
        if page is None:
            _gone(topics.log(topic).start, topics.log(topic).end)
        # Relative to this URL, so that it holds behind any proxy.
        link = f'<{topic}?log={page.log}&offset={page.next}&min={least}&wait={wait:g}>; rel="next"'
        return answer(request, page.json(), page.etag, Link=link)

    return routes


def _gone(start: int, end: int) -> NoReturn:
    raise HTTPException(410, f"these records are gone; there are those from offset {start} to {end}")


async def _record_in(request: Request, limit: int) -> bytes:
    """The request's body: one JSON value, written the short way."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "a record is application/json")
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > limit:
                raise HTTPException(413, f"a record has {limit} bytes at most")
    except ClientDisconnect as error:
        raise HTTPException(400, "the client has left") from error
    try:
        # Python reads NaN, 1e999 and halves of surrogate pairs, which are no JSON that could be sent on.
        value = json.loads(body)
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is no JSON: {type(error).__name__}") from error
