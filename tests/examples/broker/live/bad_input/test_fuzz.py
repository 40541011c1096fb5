"""Requests with a few changed bytes are refused, or answered as the requests that they have become."""

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.api_versions.v4 import ApiVersionsRequest
from kio.schema.errors import ErrorCode

from examples.broker.protocol.versions import request_class
from tests.examples.broker.live.bad_input.raw_client import RawClient
from tests.examples.broker.live.bad_input.valid_requests import (
    REPLICATED_TOPIC,
    fetch_request,
    join_request,
    produce_request,
)
from tests.examples.broker.protocol.wire_messages import SERVED, filled, request_frame, with_size
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

# Requests that wait, write or change something, and every request of every version.
GOOD: Final = [
    fetch_request(max_wait_ms=600_000),
    fetch_request(REPLICATED_TOPIC, max_wait_ms=600_000, replica_id=3),
    produce_request(wire_batch(b"value", producer=(7, 0, 0)), REPLICATED_TOPIC),
    join_request("fuzz"),
]
EVERY: Final = [filled(request_class(api, version)) for api, version in SERVED]

frames = st.sampled_from(GOOD) | st.sampled_from(EVERY)
changes = st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=4)


def changed(frame: bytes, changes: list[tuple[int, int]]) -> bytes:
    """Change some bytes after the API key and version, which say how to decode the rest."""
    data = bytearray(frame)
    for place, byte in changes:
        data[4 + place % (len(data) - 4)] = byte
    return bytes(data)


@pytest.mark.usefixtures("healthy_client")
@settings(max_examples=150, deadline=None)
@given(request=frames, changes=changes)
def test_a_request_with_changed_bytes_harms_no_other_client(
    address: tuple[str, int], request: Any, changes: list[tuple[int, int]]
) -> None:
    with RawClient.connected(address) as client, RawClient.connected(address) as witness:
        client.send(with_size(changed(request_frame(request), changes)))
        hello = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        assert witness.ask(hello).error_code is ErrorCode.none
