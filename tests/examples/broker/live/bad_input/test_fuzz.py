"""Requests that are cut off, or have a few changed bytes, harm no other client."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.broker.protocol.apis import API_VERSIONS, FETCH, HEARTBEAT, JOIN_GROUP, PRODUCE
from examples.broker.protocol.versions import request_class
from tests.examples.broker.live.bad_input.raw_client import RawClient, frame_of
from tests.examples.broker.live.bad_input.valid_requests import (
    REPLICATED_TOPIC,
    fetch_of,
    join_of,
    produce_of,
)
from tests.examples.broker.protocol.wire_messages import SERVED, filled, request_frame, with_size
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

HELLO: Final = {"client_software_name": "raw", "client_software_version": "1"}
# A request of a version with lengths of fixed size, and requests that wait when they are complete.
WHOLE: Final = {
    "heartbeat": frame_of(HEARTBEAT, {"group_id": "group", "generation_id": 1, "member_id": "member"}, 0),
    "produce": frame_of(PRODUCE, produce_of(wire_batch(b"value"))),
    "fetch": frame_of(FETCH, fetch_of(max_wait=600_000)),
    "join": frame_of(JOIN_GROUP, join_of("group")),
}
# Requests that wait, write or change something, and every request of every version.
GOOD: Final = [
    frame_of(FETCH, fetch_of(max_wait=600_000)),
    frame_of(FETCH, fetch_of(REPLICATED_TOPIC, max_wait=600_000, replica_id=3)),
    frame_of(PRODUCE, produce_of(wire_batch(b"value", producer=(7, 0, 0)), REPLICATED_TOPIC)),
    frame_of(JOIN_GROUP, join_of("fuzz")),
]
EVERY: Final = [request_frame(filled(request_class(api, version))) for api, version in SERVED]

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
@given(frame=frames, changes=changes)
def test_a_request_with_changed_bytes_harms_no_other_client(
    address: tuple[str, int], frame: bytes, changes: list[tuple[int, int]]
) -> None:
    with RawClient.connected(address) as client, RawClient.connected(address) as witness:
        client.send(changed(frame, changes))
        assert witness.ask(API_VERSIONS, HELLO)["error_code"] == "none"


@pytest.mark.parametrize("frame", WHOLE.values(), ids=WHOLE)
def test_a_truncated_request_closes_the_connection(address: tuple[str, int], frame: bytes) -> None:
    for length in range(len(frame)):
        with RawClient.connected(address) as client:
            client.send(frame[:length])
            assert client.until_closed() == b""


@pytest.mark.parametrize("frame", WHOLE.values(), ids=WHOLE)
def test_a_disconnect_within_a_request_leaves_nothing_behind(address: tuple[str, int], frame: bytes) -> None:
    data = with_size(frame)
    for length in range(len(data)):
        with RawClient.connected(address) as client:
            client.send_raw(data[:length])
            if length % 2:
                client.vanish()
