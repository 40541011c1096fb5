"""Conditional requests (RFC 9110, section 13): a client names what it has, and is sent what differs."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response


def client_has(request: Request, etag: str) -> bool:
    """Whether `etag` is among what the client names in If-None-Match."""
    named = ",".join(request.headers.getlist("if-none-match")).split(",")
    return any(one.strip().removeprefix("W/") in ("*", etag) for one in named)


def answer(request: Request, body: bytes, etag: str, **headers: str) -> Response:
    """`body`, which is JSON, or 304 when the client has it."""
    headers = {"ETag": etag, "Cache-Control": "no-cache", **headers}
    if client_has(request, etag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body, headers=headers, media_type="application/json")
