"""From frames to the newest requests, and from the newest responses to frames.

A frame here is without its length on the way in, and with it on the way out. Which version is spoken is
decided by the request; its handler, and whoever asks a peer, only ever sees the newest.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from struct import Struct
from struct import error as StructError
from typing import Any

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.protocol import RequestPayload, ResponsePayload

from examples.broker.protocol.apis import API_VERSIONS, APIS, Api, RequestT, ResponseT
from examples.broker.protocol.array_lengths import array_length_check
from examples.broker.protocol.errors import (
    MalformedRequest,
    MalformedResponse,
    UnsupportedApi,
    UnsupportedVersion,
)
from examples.broker.protocol.versions import downgrade, request_class, response_class, upgrade

# What every request begins with, whatever its version: API key, version, correlation id.
_REQUEST_START = Struct(">hhi")
SMALLEST_REQUEST = _REQUEST_START.size
SMALLEST_RESPONSE = 4
_SIZE = Struct(">i")
_SIZE_AND_CORRELATION_ID = Struct(">ii")
_SIZE_AND_REQUEST_START = Struct(">ihhih")  # with the length of the client id

# What kio, and the check before it, raise for bytes that are not what they should be.
_UNREADABLE = (SerialError, ValueError, OverflowError, LookupError, StructError)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a request says besides its contents: who asks, and how the answer is to be written."""

    api: Api[Any, Any]
    version: int
    correlation_id: int
    client_id: str | None
    client_host: str

    def __str__(self) -> str:
        return f"{self.api.name} v{self.version} of {self.client_id!r} at {self.client_host}"


def decode_request(frame: bytes, client_host: str) -> tuple[RequestContext, Any]:
    """A request, as of the newest version of its API. ProtocolError if it cannot be answered.

    An ApiVersions request of an unknown version is not read, but None: it is to be answered, as version 0,
    with what is served (KIP-511).
    """
    if len(frame) < SMALLEST_REQUEST:
        raise MalformedRequest(f"{len(frame)} bytes are no request")
    key, version, correlation_id = _REQUEST_START.unpack_from(frame)
    api = APIS.get(key)
    if api is None:
        raise UnsupportedApi(f"API key {key} v{version} is not served")
    if not api.min_version <= version <= api.max_version:
        if api is API_VERSIONS:
            return RequestContext(api, 0, correlation_id, None, client_host), None
        raise UnsupportedVersion(f"v{version} of {api!r} is not served")
    try:
        client_id, request = _request_reader(api, version)(frame)
    except _UNREADABLE as error:
        raise MalformedRequest(f"{api.name} v{version} cannot be read: {error}") from error
    return RequestContext(api, version, correlation_id, client_id, client_host), request


def encode_response(context: RequestContext, response: Any) -> bytes:
    """The newest response in the version of the request, length and header included."""
    return _response_writer(context.api, context.version)(context.correlation_id, response)


def encode_request(
    api: Api[RequestT, ResponseT], correlation_id: int, client_id: str, request: RequestT
) -> bytes:
    """The newest request, length and header included."""
    client = client_id.encode()
    start = _SIZE_AND_REQUEST_START.pack(0, api.key, api.max_version, correlation_id, len(client))
    buffer = io.BytesIO()
    buffer.write(start + client + _header_end(request_class(api, api.max_version)))
    entity_writer(api.request)(buffer, request)
    return _with_size(buffer)


def decode_response(api: Api[RequestT, ResponseT], frame: bytes) -> tuple[int, ResponseT]:
    """The correlation id and the newest response. MalformedResponse if it is not one."""
    try:
        header, header_size = entity_reader(response_class(api, api.max_version).__header_schema__)(frame, 0)
        response, size = entity_reader(api.response)(frame, header_size)
    except _UNREADABLE as error:
        raise MalformedResponse(f"{api.name} v{api.max_version} cannot be read: {error}") from error
    if excess := len(frame) - header_size - size:
        raise MalformedResponse(f"{api.name} v{api.max_version} has {excess} bytes too many")
    return header.correlation_id, response


@cache
def _request_reader(api: Api[Any, Any], version: int) -> Callable[[bytes], tuple[str | None, Any]]:
    request_type = request_class(api, version)
    read_header = entity_reader(request_type.__header_schema__)
    check_array_lengths = array_length_check(request_type)
    read_request = entity_reader(request_type)
    to_newest = upgrade(api, version)

    def read(frame: bytes) -> tuple[str | None, Any]:
        header, header_size = read_header(frame, 0)
        check_array_lengths(frame, header_size)
        # What follows is ignored, as by Kafka: librdkafka has three bytes too many in its request for the
        # metadata of all topics (librdkafka#5049).
        request, _ = read_request(frame, header_size)
        return header.client_id, to_newest(request)

    return read


@cache
def _response_writer(api: Api[Any, Any], version: int) -> Callable[[int, Any], bytes]:
    response_type = response_class(api, version)
    header_end = _header_end(response_type)
    write_response = entity_writer(response_type)
    from_newest = downgrade(api, version)

    def write(correlation_id: int, response: Any) -> bytes:
        buffer = io.BytesIO()
        buffer.write(_SIZE_AND_CORRELATION_ID.pack(0, correlation_id) + header_end)
        write_response(buffer, from_newest(response))
        return _with_size(buffer)

    return write


def _header_end(message: type[RequestPayload] | type[ResponsePayload]) -> bytes:
    """How many tagged fields follow, if the header is of a version that can have them (KIP-482): none."""
    return b"\0" if message.__header_schema__.__flexible__ else b""


def _with_size(buffer: io.BytesIO) -> bytes:
    """What was written, its first four bytes replaced by how many bytes follow them."""
    size = buffer.tell() - _SIZE.size
    buffer.seek(0)
    buffer.write(_SIZE.pack(size))
    return buffer.getvalue()
