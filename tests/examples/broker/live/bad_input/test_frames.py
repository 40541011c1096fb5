"""Bytes that are no request close their connection, and disturb no other client."""

import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest
from kio.schema.api_versions.v4 import ApiVersionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v0 import HeartbeatRequest as HeartbeatRequestV0
from kio.schema.types import GroupId
from kio.static.primitive import i32

from examples.broker.protocol.apis import API_VERSIONS, APIS
from tests.examples.broker.live.bad_input.raw_client import RawClient
from tests.examples.broker.live.bad_input.valid_requests import (
    READ_TIMEOUT,
    TOPIC,
    fetch_request,
    join_request,
    produce_request,
)
from tests.examples.broker.live.live_cluster import LiveCluster
from tests.examples.broker.protocol.wire_messages import named, read_response, request_frame, with_size
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

HELLO = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
# A request of a version with lengths of fixed size, and requests that wait when they are complete.
WHOLE = {
    "heartbeat": HeartbeatRequestV0(group_id=GroupId("group"), generation_id=i32(1), member_id="member"),
    "produce": produce_request(wire_batch(b"value")),
    "fetch": fetch_request(max_wait_ms=600_000),
    "join": join_request("group"),
}
MEGABYTE = 1 << 20
# The memory that a whole cluster may use for a few dozen such clients.
MODEST = 16 * MEGABYTE


def header(api_key: int, version: int) -> bytes:
    return api_key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + bytes(6)


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", id="TLS"),
        pytest.param(Random(1).randbytes(100_000), id="noise"),
        pytest.param(with_size(b"\xff" * 50_000), id="ones"),
        pytest.param(bytes(100_000), id="zeroes"),
        pytest.param(b"\x7f\xff\xff\xff" + bytes(1000), id="2 GiB"),
        pytest.param(b"\x80\x00\x00\x00" + bytes(1000), id="the most negative length"),
        pytest.param(b"\xff\xff\xff\xff" + bytes(1000), id="a negative length"),
        pytest.param(with_size(bytes(7)), id="less than a header"),
    ],
)
def test_invalid_bytes_close_the_connection(client: RawClient, garbage: bytes) -> None:
    client.send(garbage)
    assert client.until_closed() == b""


@pytest.mark.parametrize("api_key", [-1, 4, 7, 999, 2**15 - 1])
def test_an_unknown_api_closes_the_connection(client: RawClient, api_key: int) -> None:
    client.send(with_size(header(api_key, 0)))
    assert client.until_closed() == b""


@pytest.mark.parametrize("api", [api for api in APIS.values() if api is not API_VERSIONS], ids=named)
def test_an_unknown_version_closes_the_connection(address: tuple[str, int], api: Any) -> None:
    for version in (-1, api.min_version - 1, api.max_version + 1, 2**15 - 1):
        with RawClient.connected(address) as client:
            client.send(with_size(header(api.key, version)))
            assert client.until_closed() == b""


def test_api_versions_of_an_unknown_version_lists_the_served_ones(client: RawClient) -> None:
    client.send(with_size(header(API_VERSIONS.key, 99)))
    _, response = read_response(API_VERSIONS, 0, with_size(client.frame()))
    assert response.error_code is ErrorCode.unsupported_version
    assert client.ask(HELLO).error_code is ErrorCode.none


@pytest.mark.parametrize("request_", WHOLE.values(), ids=WHOLE)
def test_a_truncated_request_closes_the_connection(address: tuple[str, int], request_: Any) -> None:
    frame = request_frame(request_)
    for length in range(len(frame)):
        with RawClient.connected(address) as client:
            client.send(with_size(frame[:length]))
            assert client.until_closed() == b""


@pytest.mark.parametrize("request_", WHOLE.values(), ids=WHOLE)
def test_a_disconnect_within_a_request_leaves_nothing_behind(address: tuple[str, int], request_: Any) -> None:
    data = with_size(request_frame(request_))
    for length in range(len(data)):
        with RawClient.connected(address) as client:
            client.send(data[:length])
            if length % 2:
                client.vanish()


def test_slow_clients_are_disconnected(address: tuple[str, int]) -> None:
    began = time.monotonic()
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient.connected(address)) for _ in range(50)]
        for byte in with_size(request_frame(HELLO))[:5]:
            for client in clients:
                client.send(bytes([byte]))
            time.sleep(READ_TIMEOUT / 20)
        assert {client.until_closed() for client in clients} == {b""}
        assert time.monotonic() - began >= READ_TIMEOUT


def test_lengths_in_a_request_reserve_no_memory(
    address: tuple[str, int], shared_cluster: LiveCluster
) -> None:
    # Frames of the largest accepted size, and arrays with more elements than fit into memory.
    claims = {
        "a frame": (100 * MEGABYTE).to_bytes(4, "big") + b"\x00\x01\x00\x0c",
        "topics": with_size(header(3, 1)[:8] + b"\xff\xff" + b"\x7f\xff\xff\xff" + bytes(100)),
        "compact topics": with_size(
            header(1, 12)[:8] + b"\xff\xff\x00" + bytes(25) + b"\xff\xff\xff\xff\x0f"
        ),
        "a group": with_size(header(11, 9)[:8] + b"\xff\xff\x00" + b"\xff\xff\xff\xff\x07" + bytes(100)),
        "a batch": with_size(request_frame(produce_request(b"\x00" * 8 + b"\x7f\xff\xff\xff" + bytes(50)))),
    }
    tracemalloc.start()
    try:
        with ExitStack() as stack:
            before, _ = tracemalloc.get_traced_memory()
            for claim in claims.values():
                for _ in range(10):
                    stack.enter_context(RawClient.connected(address)).send(claim)
            with RawClient.connected(address) as client:
                assert client.ask(HELLO).error_code is ErrorCode.none
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < MODEST


def test_large_invalid_requests_of_many_clients_are_refused(address: tuple[str, int]) -> None:
    nonsense = with_size(header(1, 12) + Random(2).randbytes(4 * MEGABYTE))

    def send_and_wait(_: int) -> bytes:
        with RawClient.connected(address) as client:
            client.send(nonsense)
            return client.until_closed()

    with ThreadPoolExecutor(4) as executor:
        assert {*executor.map(send_and_wait, range(8))} == {b""}


def test_bytes_after_a_request_are_accepted(client: RawClient) -> None:
    client.send(with_size(request_frame(fetch_request(TOPIC)) + bytes(10 * MEGABYTE)))
    assert len(client.frame()) > 0
    assert client.ask(HELLO).error_code is ErrorCode.none
