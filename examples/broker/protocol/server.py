"""The server of a broker: it accepts connections, serves them and closes them, and says what it serves."""

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping
from functools import partial
from socket import socket
from typing import Final

from anyio import (
    TASK_STATUS_IGNORED,
    CancelScope,
    Event,
    aclose_forcefully,
    create_task_group,
    create_tcp_listener,
    move_on_after,
    sleep,
)
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup, TaskStatus
from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.api_versions.v4.response import ApiVersion
from kio.static.primitive import i16

from examples.broker.errors import ErrorCode
from examples.broker.metadata import address
from examples.broker.protocol.apis import API_VERSIONS, APIS, NO_THROTTLE, PRODUCE, Api, RequestContext
from examples.broker.protocol.connection import Connection, ConnectionLimits, Handler
from examples.broker.protocol.gate import Gate

logger = logging.getLogger(__name__)

# The number of connections that may wait to be accepted.
_BACKLOG: Final = 4096
# Seconds until the next try after accepting has failed, usually because there are no file descriptors left.
_ACCEPT_BACKOFF: Final = 0.1
# Lower than the versions that are served. Many versions of librdkafka compress only if the broker claims to
# serve the first version of Produce, although they do not use it (KAFKA-18659, librdkafka#4956).
ADVERTISED_MIN_VERSIONS: Final = {PRODUCE.key: 0}

NAMES_SOFTWARE: Final = 3
"""From this version of ApiVersions on, clients give their name and version."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class Server:
    """Serves ``routes``, which are handlers by API key, and ApiVersions, which lists them.

    While ``gate`` is closed, no request is handled and no response sent. Port 0 means any free port.
    """

    def __init__(
        self,
        routes: Mapping[int, Handler],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        gate: Gate | None = None,
        limits: ConnectionLimits | None = None,
    ) -> None:
        served = [APIS[key] for key in sorted({*routes, API_VERSIONS.key})]
        self._routes: Mapping[int, Handler] = {API_VERSIONS.key: partial(api_versions, served), **routes}
        self._host = host
        self._port = port
        self._gate = gate or Gate()
        self._limits = limits or ConnectionLimits()
        self._connections: set[Connection] = set()
        self._accepting = CancelScope()
        self._serving = CancelScope()
        self._stopped: Event | None = None
        # While it accepts, the sockets on which connections come.
        self._sockets: list[socket] = []
        self.is_cut_off = False

    def __repr__(self) -> str:
        return f"<Server at {address(self._host, self._port)} with {self.connection_count} connections>"

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    async def serve(self, *, task_status: TaskStatus[int] = TASK_STATUS_IGNORED) -> None:
        """Accept and serve connections until ``stop``. Call it once. The task status is the port.

        Raises OSError when the port is in use. When cancelled, it closes all connections at once.
        """
        self._stopped = Event()
        try:
            with self._serving:
                listeners = await create_tcp_listener(
                    local_host=self._host, local_port=self._port, backlog=_BACKLOG
                )
                async with create_task_group() as connections:
                    with self._accepting:
                        async with listeners:
                            self._sockets = [
                                each.extra(SocketAttribute.raw_socket) for each in listeners.listeners
                            ]
                            self._port = listeners.extra(SocketAttribute.local_port)
                            task_status.started(self._port)
                            await self._accept(listeners, connections)
        finally:
            self._sockets.clear()
            self._stopped.set()

    def cut_off(self) -> None:
        """Break all connections at once, and each new one, until ``reconnect``."""
        self.is_cut_off = True
        for connection in self._connections:
            connection.cut()

    def reconnect(self) -> None:
        self.is_cut_off = False

    def stop_accepting(self) -> None:
        """Accept no more connections.

        When asyncio's sock_accept is cancelled in the moment in which a connection comes, it logs an error
        and loses the connection's socket. So the loop stops to look for connections first.
        """
        for each in self._sockets:
            asyncio.get_running_loop().remove_reader(each)
        self._sockets.clear()
        self._accepting.cancel()

    async def stop(self, grace: float) -> None:
        """Accept no more connections, answer pending requests for up to ``grace`` seconds, and close."""
        self.stop_accepting()
        for connection in self._connections:
            connection.finish()
        if self._stopped is not None:
            with move_on_after(grace):
                await self._stopped.wait()
            self._serving.cancel()
            await self._stopped.wait()

    async def _accept(self, listeners: Listener[SocketStream], connections: TaskGroup) -> None:
        while True:
            try:
                await listeners.serve(self._connect, connections)
            except* OSError as errors:
                logger.warning(
                    "cannot accept connections, retry in %g s: %s", _ACCEPT_BACKOFF, errors.exceptions
                )
            await sleep(_ACCEPT_BACKOFF)

    async def _connect(self, stream: SocketStream) -> None:
        if self.is_cut_off:
            await aclose_forcefully(stream)
            return
        connection = Connection(stream, self._routes, self._gate, self._limits)
        if self._accepting.cancel_called:
            connection.finish()
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.remove(connection)


async def api_versions(
    served: Iterable[Api], context: RequestContext, request: ApiVersionsRequest | None
) -> ApiVersionsResponse:
    """Return the APIs that are served.

    The error is UNSUPPORTED_VERSION for an unknown version (None), and INVALID_REQUEST, without APIs, for a
    client whose name or version is none (KIP-511).
    """
    error = ErrorCode.none
    if request is None:
        error = ErrorCode.unsupported_version
    elif context.version >= NAMES_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        error, served = ErrorCode.invalid_request, ()
    return ApiVersionsResponse(
        error_code=error,
        api_keys=tuple(
            ApiVersion(
                api_key=i16(api.key),
                min_version=i16(ADVERTISED_MIN_VERSIONS.get(api.key, api.min_version)),
                max_version=i16(api.max_version),
            )
            for api in served
        ),
        throttle_time=NO_THROTTLE,
    )
