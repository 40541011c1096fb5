"""Requests to the handlers of one broker as bytes of the protocol, without a network."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from examples.broker.handlers.reads import fetch
from examples.broker.protocol.apis import FETCH, Api
from examples.broker.protocol.client import PeerConnection
from examples.broker.protocol.codec import decode_request, decode_response, encode_request, encode_response
from examples.broker.protocol.connection import Handler
from examples.broker.replication.fetch_sessions import FetchSessions
from tests.examples.broker.handlers.plain_requests import served

_SIZE: Final = 4


class Loopback(PeerConnection):
    """A connection to handlers in this process. It encodes and decodes every message."""

    def __init__(self, sessions: FetchSessions) -> None:
        self._routes: Mapping[int, Handler] = {
            **served(sessions.replicas),
            FETCH.key: partial(fetch, sessions),
        }

    def __repr__(self) -> str:
        return "<Loopback>"

    async def request(self, api: Api, request: Any) -> Any:
        answer = await self.answer(api, request)
        assert answer is not None
        return answer

    async def answer(self, api: Api, request: Any) -> Any:
        """Send a request; None when there is no response."""
        context, received = decode_request(encode_request(api, 1, "test", request)[_SIZE:], "localhost")
        response = await self._routes[api.key](context, received)
        if response is None:
            return None
        return decode_response(api, encode_response(context, response)[_SIZE:])[1]
