"""Requests to the handlers of one broker as bytes of the protocol, without a network."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from examples.broker.handlers.reads import fetch, list_offsets, offset_for_leader_epoch
from examples.broker.handlers.writes import delete_records, produce
from examples.broker.protocol.apis import (
    DELETE_RECORDS,
    FETCH,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    Api,
    RequestT,
    ResponseT,
)
from examples.broker.protocol.client import PeerConnection
from examples.broker.protocol.codec import decode_request, decode_response, encode_request, encode_response
from examples.broker.replication.fetch_sessions import FetchSessions

_SIZE: Final = 4


class Loopback(PeerConnection):
    """A connection to handlers in this process. It encodes and decodes every message."""

    def __init__(self, sessions: FetchSessions) -> None:
        replicas = sessions.replicas
        self._routes: Mapping[Api[Any, Any], Callable[[Any, Any], Awaitable[Any]]] = {
            PRODUCE: partial(produce, replicas),
            FETCH: partial(fetch, sessions),
            LIST_OFFSETS: partial(list_offsets, replicas),
            DELETE_RECORDS: partial(delete_records, replicas),
            OFFSET_FOR_LEADER_EPOCH: partial(offset_for_leader_epoch, replicas),
        }

    def __repr__(self) -> str:
        return "<Loopback>"

    async def request(self, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT:
        answer = await self.answer(api, request)
        assert answer is not None
        return answer

    async def answer(self, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT | None:
        """Send a request; None when there is no response."""
        context, received = decode_request(encode_request(api, 1, "test", request)[_SIZE:], "localhost")
        response = await self._routes[api](context, received)
        if response is None:
            return None
        return decode_response(api, encode_response(context, response)[_SIZE:])[1]
