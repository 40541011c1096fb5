"""Responses after which a client goes on: they have the link of the next request, and an entity tag."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import Response

OPAQUE_TAG: Final = re.compile(r'"[\x21\x23-\x7e\x80-\xff]*"')
"""An entity tag without the mark of a weak tag. Weak and strong tags count the same (RFC 9110, 13.1.2)."""

OF_THE_BODY: Final = (b"content-encoding", b"content-length", b"content-type")
"""The headers that describe a body. A 304 has no body."""


def client_has(request: Request, tag: str) -> bool:
    """Whether the client of `request` has the content with the entity tag `tag`, by its If-None-Match header.

    Ask before the wait: a client that has all there is waits for more, whatever position it names. Raises
    ValueError when `tag` is no entity tag.
    """
    if not OPAQUE_TAG.fullmatch(tag):
        raise ValueError(f"""an entity tag is text in double quotes, such as '"7"', not {tag!r}""")
    # uvicorn leaves the space behind a header's value in place.
    named = ",".join(request.headers.getlist("if-none-match")).strip()
    return named == "*" or tag in OPAQUE_TAG.findall(named)


def resumable(request: Request, response: Response, tag: str, **following: object) -> Response:
    """`response` with the headers by which a client goes on, or an empty 304 if the client has its content.

    `tag` is the entity tag of the content, with its quotes. Equal content has the same tag at any time, and
    different content has different tags. `following` are the query parameters that the client's next request
    changes, such as ``after=position``. The Link header with rel=next (RFC 8288) is the URL of `request` with
    these parameters. The link is relative, so it is right behind any proxy. Without `following` there is no
    link.

    Caches ask before they use the response again: its Cache-Control is no-cache, unless it has another one.

    Raises ValueError when `tag` is no entity tag.
    """
    unchanged = client_has(request, tag)
    headers = response.headers
    headers["ETag"] = tag
    headers.setdefault("Cache-Control", "no-cache")
    if following:
        # A query may have a name several times.
        named = parse_qsl(request.url.query, keep_blank_values=True)
        kept = [(name, value) for name, value in named if name not in following]
        # A colon, as in the text of a position, needs no quoting in a query.
        query = urlencode([*kept, *following.items()], safe=":")
        headers["Link"] = f'<?{query}>; rel="next"'
    if not unchanged:
        return response
    empty = Response(status_code=HTTPStatus.NOT_MODIFIED, background=response.background)
    empty.raw_headers = [header for header in response.raw_headers if header[0] not in OF_THE_BODY]
    return empty
