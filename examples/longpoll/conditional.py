"""Conditional requests (RFC 9110, section 13): a client that names its entity tag is sent only changes."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response


def client_has(request: Request, etag: str) -> bool:
    """Whether the request's If-None-Match header names `etag`, or is ``*``."""
    named = ",".join(request.headers.getlist("if-none-match")).split(",")
    return any(one.strip().removeprefix("W/") in ("*", etag) for one in named)


def json_or_not_modified(request: Request, body: bytes, etag: str, **headers: str) -> Response:
    """Respond with `body`, which is JSON, or with an empty 304 if the client has it."""
    headers = {"ETag": etag, "Cache-Control": "no-cache", **headers}
    if client_has(request, etag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body, headers=headers, media_type="application/json")
