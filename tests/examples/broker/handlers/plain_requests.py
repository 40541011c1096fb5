"""Requests to handlers, as plain values and as the bytes of the protocol."""

from collections.abc import Awaitable, Callable

from examples.broker.protocol.apis import Api, RequestContext, RequestT, ResponseT
from examples.broker.protocol.codec import decode_response, encode_response
from tests.examples.broker.protocol.plain_messages import Plain, message, plain

_SIZE = 4


async def ask(
    api: Api[RequestT, ResponseT],
    handler: Callable[[RequestContext, RequestT], Awaitable[ResponseT]],
    *,
    version: int | None = None,
    **values: Plain,
) -> Plain:
    """Return a handler's answer to a request of the newest version, from a client with this version."""
    newest = RequestContext(api, api.max_version, 1, "reader", "10.0.0.1")
    context = RequestContext(api, api.max_version if version is None else version, 1, "reader", "10.0.0.1")
    response = await handler(context, message(api.request, values))
    return plain(decode_response(api, encode_response(newest, response)[_SIZE:])[1])
