"""Decoding of frames into requests of the newest version, and encoding of its responses into frames.

A received frame has no length prefix here, and a frame to send has one. The request selects the version on
the wire. Handlers, and code that sends requests to other brokers, see the newest version alone.
"""

import io
from collections.abc import Callable
from functools import cache
from struct import Struct
from struct import error as StructError
from typing import Any

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.protocol import RequestPayload, ResponsePayload

from examples.broker.errors import ProtocolError
from examples.broker.protocol.apis import API_VERSIONS, APIS, Api, RequestContext
from examples.broker.protocol.array_lengths import array_length_check
from examples.broker.protocol.versions import downgrade, request_class, response_class, upgrade

# The start of every request, in all versions: API key, version, correlation id.
_REQUEST_START = Struct(">hhi")
SMALLEST_REQUEST = _REQUEST_START.size
SMALLEST_RESPONSE = 4
_SIZE = Struct(">i")
_SIZE_AND_CORRELATION_ID = Struct(">ii")
_SIZE_AND_REQUEST_START = Struct(">ihhih")  # with the length of the client id

# The errors that kio, and the check before it, raise for invalid bytes.
_UNREADABLE = (SerialError, ValueError, OverflowError, LookupError, StructError)


def decode_request(frame: bytes, client_host: str) -> tuple[RequestContext, Any]:
    """Return a request in the newest version of its API. Raises ProtocolError when it cannot be answered.

    The frame has at least ``SMALLEST_REQUEST`` bytes.

    An ApiVersions request of an unknown version is not decoded, and returned as None. The answer, in version
    0, is the list of the APIs that are served (KIP-511).
    """
    key, version, correlation_id = _REQUEST_START.unpack_from(frame)
    api = APIS.get(key)
    if api is None:
        raise ProtocolError(f"API key {key} v{version} is not served")
    if not api.min_version <= version <= api.max_version:
        if api is API_VERSIONS:
            return RequestContext(api, 0, correlation_id, None, client_host), None
        raise ProtocolError(f"v{version} of {api!r} is not served")
    try:
        client_id, request = _request_reader(api, version)(frame)
    except _UNREADABLE as error:
        raise ProtocolError(f"{api.name} v{version} cannot be decoded: {error}") from error
    return RequestContext(api, version, correlation_id, client_id, client_host), request


def encode_response(context: RequestContext, response: Any) -> bytes:
    """Return a response of the newest version in the version of its request, with length and header."""
    return _response_writer(context.api, context.version)(context.correlation_id, response)


def encode_request(api: Api, correlation_id: int, client_id: str, request: Any) -> bytes:
    """Return a request of the newest version, with length and header."""
    client = client_id.encode()
    start = _SIZE_AND_REQUEST_START.pack(0, api.key, api.max_version, correlation_id, len(client))
    buffer = io.BytesIO()
    buffer.write(start + client + _header_end(api.request))
    entity_writer(api.request)(buffer, request)
    return _with_size(buffer)


def decode_response(api: Api, frame: bytes) -> tuple[int, Any]:
    """Return the correlation id and a response of the newest version. Raises ProtocolError."""
    try:
        header, header_size = entity_reader(api.response.__header_schema__)(frame, 0)
        response, size = entity_reader(api.response)(frame, header_size)
    except _UNREADABLE as error:
        raise ProtocolError(f"{api.name} v{api.max_version} cannot be decoded: {error}") from error
    if excess := len(frame) - header_size - size:
        raise ProtocolError(f"{api.name} v{api.max_version} has {excess} bytes too many")
    return header.correlation_id, response


@cache
def _request_reader(api: Api, version: int) -> Callable[[bytes], tuple[str | None, Any]]:
    request_type = request_class(api, version)
    read_header = entity_reader(request_type.__header_schema__)
    check_array_lengths = array_length_check(request_type)
    read_request = entity_reader(request_type)
    to_newest = upgrade(api, version)

    def read(frame: bytes) -> tuple[str | None, Any]:
        header, header_size = read_header(frame, 0)
        check_array_lengths(frame, header_size)
        # Bytes after the request are ignored, as in Kafka: librdkafka sends three bytes too many in its
        # request for the metadata of all topics (librdkafka#5049).
        request, _ = read_request(frame, header_size)
        return header.client_id, to_newest(request)

    return read


@cache
def _response_writer(api: Api, version: int) -> Callable[[int, Any], bytes]:
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
    """Return the end of a header: no tagged fields, in the versions that can have them (KIP-482)."""
    return b"\0" if message.__header_schema__.__flexible__ else b""


def _with_size(buffer: io.BytesIO) -> bytes:
    """Return the bytes of the buffer, after setting the first four to the number of bytes that follow."""
    size = buffer.tell() - _SIZE.size
    buffer.seek(0)
    buffer.write(_SIZE.pack(size))
    return buffer.getvalue()
