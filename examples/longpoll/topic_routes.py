"""The HTTP routes of topics: append a record, and read records by long poll."""

import json
from typing import Annotated, Any, NoReturn

from fastapi import APIRouter, Header, HTTPException, Path, Query, Request, Response
from starlette.requests import ClientDisconnect

from examples.longpoll.conditional import json_or_not_modified
from examples.longpoll.models import BUSY, NOT_MODIFIED, Appended, Records, problem
from examples.longpoll.service import Service
from examples.longpoll.topic_log import TopicLog
from examples.longpoll.topics import DelayedRead, TooManyTopics, topic_key
from purgatory.web import Position, client_has, long_poll

MAX_OFFSET = 2**53 - 1
"""The largest whole number that JSON carries exactly to every client (RFC 8259, section 6)."""

Topic = Annotated[
    str,
    Path(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="The topic. Its first record creates it."),
]

RECORD_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": {}}}}
}


def topic_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["topics"])
    topics, polls, limits = service.topics, service.polls, service.limits

    @routes.post(
        "/topics/{topic}",
        status_code=201,
        openapi_extra=RECORD_BODY,
        responses={
            400: problem("The body is not valid JSON, or is incomplete."),
            403: problem("The record would create more topics than the service allows, and all are used."),
            413: problem(f"The record has more than {limits.record_bytes} bytes."),
            415: problem("The content type is not application/json."),
        },
    )
    async def append(topic: Topic, request: Request) -> Appended:
        """Append a record, which is any JSON value, and answer the polls that wait for it."""
        record = await _read_record(request, limits.record_bytes)
        try:
            return Appended(topic=topic, offset=await topics.append(topic, record))
        except TooManyTopics as error:
            raise HTTPException(403, str(error)) from error

    @routes.get(
        "/topics/{topic}",
        response_model=Records,
        responses={
            304: NOT_MODIFIED,
            404: problem("The offset is beyond the end of the log."),
            410: problem("The records at the offset have been dropped, or the service has restarted."),
            503: BUSY,
        },
    )
    async def read(
        topic: Topic,
        request: Request,
        offset: Annotated[
            int | None,
            Query(
                ge=0,
                le=MAX_OFFSET,
                description="The first offset to read; by default that of the oldest record.",
            ),
        ] = None,
        min_records: Annotated[
            int,
            Query(
                alias="min", ge=1, le=limits.answer_records, description="The number of records to wait for."
            ),
        ] = 1,
        wait: Annotated[
            float,
            Query(ge=0, le=limits.wait, allow_inf_nan=False, description="The longest wait, in seconds."),
        ] = 0.0,
        log: Annotated[
            str | None,
            Query(
                max_length=64,
                description="The log of the last response. If it is gone, the response is a 410.",
            ),
        ] = None,
        if_none_match: Annotated[
            str | None, Header(description="The entity tag of the last response: wait for more records.")
        ] = None,
    ) -> Response:
        """Return the records from `offset` on, as soon as there are `min` of them, or after `wait` seconds.

        To follow a topic, request the Link with rel=next of each response.
        """
        known = topics.log(topic)
        if not wait or offset is None or log != known.id or offset > known.end:
            # Another process may know more. A read that waits hears of it.
            await topics.load([topic])
            known = topics.log(topic)
        if log not in (None, known.id):
            _raise_gone(known)
        if offset is None:
            offset = known.start
        if offset > known.end:
            raise HTTPException(404, f"there is no offset {offset} yet; the next record gets {known.end}")
        position, end = Position(known.id, offset), offset
        if known.has(position) and client_has(request, known.read(offset).etag):
            end = known.end
        operation = DelayedRead(topics, topic, position, end + min_records, wait)
        page = await long_poll(request, polls, operation, [topic_key(topic)])
        if page is None:
            _raise_gone(topics.log(topic))
        # Relative to this URL, so that it is right behind any proxy.
        link = f'<{topic}?log={page.log}&offset={page.next}&min={min_records}&wait={wait:g}>; rel="next"'
        return json_or_not_modified(request, page.json(), page.etag, Link=link)

    return routes


def _raise_gone(log: TopicLog) -> NoReturn:
    raise HTTPException(
        410,
        f"these records are gone; the log has offsets {log.start} to {log.end}; ask again without an offset",
    )


async def _read_record(request: Request, max_bytes: int) -> bytes:
    """Return the request's body, which has to be one JSON value, without insignificant whitespace."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "a record has to be application/json")
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > max_bytes:
                raise HTTPException(413, f"a record may have at most {max_bytes} bytes")
    except ClientDisconnect as error:
        raise HTTPException(400, "the client has disconnected") from error
    try:
        # Python's json reads NaN, 1e999 and lone surrogates, but they cannot be sent on as JSON.
        value = json.loads(body)
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not valid JSON: {type(error).__name__}") from error
