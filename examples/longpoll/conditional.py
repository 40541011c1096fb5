"""Conditional requests (RFC 9110, section 13): a client that names its entity tag is sent only changes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from purgatory.web import resumable


def json_or_not_modified(request: Request, body: bytes, etag: str, **headers: str) -> Response:
    """Respond with `body`, which is JSON, or with an empty 304 if the client has it."""
    return resumable(request, Response(body, headers=headers, media_type="application/json"), etag)
