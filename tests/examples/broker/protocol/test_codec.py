"""Every version of every API, compared with kio's own encoding and decoding."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.api_versions.v4 import ApiVersionsRequest
from kio.schema.fetch.v4 import FetchRequest as FetchRequestV4

from examples.broker.errors import ProtocolError
from examples.broker.protocol.apis import (
    APIS,
    FETCH,
    FIND_COORDINATOR,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    OFFSET_FETCH,
    Api,
    RequestContext,
)
from examples.broker.protocol.codec import decode_request, decode_response, encode_request, encode_response
from examples.broker.protocol.versions import request_class
from tests.examples.broker.protocol.plain_messages import message
from tests.examples.broker.protocol.wire_messages import (
    SERVED,
    agree,
    emptied,
    filled,
    named,
    read_response,
    request_frame,
)

# Versions with another structure. test_versions.py tests these.
REWORDED_REQUESTS = {METADATA: 0, JOIN_GROUP: 0, FIND_COORDINATOR: 3, LEAVE_GROUP: 2, OFFSET_FETCH: 7}
REWORDED_RESPONSES = {FIND_COORDINATOR: 3, LEAVE_GROUP: 2, OFFSET_FETCH: 7}
SAME_WORDS_REQUESTS = [(api, v) for api, v in SERVED if v > REWORDED_REQUESTS.get(api, -1)]
SAME_WORDS_RESPONSES = [(api, v) for api, v in SERVED if v > REWORDED_RESPONSES.get(api, -1)]
each_version = pytest.mark.parametrize(("api", "version"), SERVED, ids=named)
each_way_to_fill = pytest.mark.parametrize(
    "make", [filled, lambda entity_type: emptied(filled(entity_type))], ids=["full", "empty"]
)


def context(api: Api, version: int) -> RequestContext:
    return RequestContext(api, version, correlation_id=7, client_id="client", client_host="here")


def test_each_api_has_its_key_and_at_least_one_version() -> None:
    for key, api in APIS.items():
        assert api.key == key
        assert api.max_version >= api.min_version
        assert request_class(api, api.max_version) is api.request


@each_way_to_fill
@pytest.mark.parametrize(("api", "version"), SAME_WORDS_REQUESTS, ids=named)
def test_a_request_of_any_version_is_decoded_as_the_newest(
    api: Api, version: int, make: Callable[[Any], Any]
) -> None:
    sent = make(request_class(api, version))
    read_context, request = decode_request(request_frame(sent), "here")
    assert read_context == context(api, version)
    assert isinstance(request, api.request)
    assert agree(request, sent)


@each_way_to_fill
@pytest.mark.parametrize(("api", "version"), SAME_WORDS_RESPONSES, ids=named)
def test_a_newest_response_is_encoded_in_any_version(
    api: Api, version: int, make: Callable[[Any], Any]
) -> None:
    response = make(api.response)
    correlation_id, received = read_response(api, version, encode_response(context(api, version), response))
    assert correlation_id == 7
    assert agree(received, response)


@each_way_to_fill
@pytest.mark.parametrize("api", APIS.values(), ids=named)
def test_requests_and_responses_between_brokers_survive_a_round_trip(
    api: Api, make: Callable[[Any], Any]
) -> None:
    asked, answered = make(api.request), make(api.response)
    frame = encode_request(api, 7, "client", asked)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert decode_request(frame[4:], "here") == (context(api, api.max_version), asked)
    frame = encode_response(context(api, api.max_version), answered)
    assert decode_response(api, frame[4:]) == (7, answered)


def test_fields_missing_in_an_old_request_have_their_defaults() -> None:
    partition = {"partition": 2, "fetch_offset": 11, "partition_max_bytes": 100}
    old = message(FetchRequestV4, {"topics": [{"topic": "events", "partitions": [partition]}]})
    _, request = decode_request(request_frame(old), "here")
    assert (request.session_id, request.session_epoch, request.rack_id) == (0, -1, "")
    assert request.forgotten_topics_data == ()
    (asked,) = request.topics[0].partitions
    assert (asked.fetch_offset, asked.log_start_offset, asked.current_leader_epoch) == (11, -1, -1)


def test_a_request_without_a_client_id_is_decoded() -> None:
    frame = request_frame(message(ApiVersionsRequest, {}), client_id=None)
    assert decode_request(frame, "here")[0].client_id is None


@pytest.mark.parametrize("version", [-1, 3, 13])
def test_the_error_names_a_version_that_is_not_served(version: int) -> None:
    with pytest.raises(ProtocolError, match=f"v{version} of <Api Fetch 4-12>"):
        decode_request(b"\x00\x01" + version.to_bytes(2, "big", signed=True) + bytes(4), "here")


@each_version
def test_a_truncated_request_is_refused_and_bytes_after_one_are_ignored(api: Api, version: int) -> None:
    frame = request_frame(filled(request_class(api, version)))
    for cut in range(8, len(frame)):
        with pytest.raises(ProtocolError, match=f"{api.name} v{version} cannot be decoded"):
            decode_request(frame[:cut], "here")
    assert decode_request(frame + b"\x01\x00", "here") == decode_request(frame, "here")


@each_version
@settings(max_examples=10)
@given(st.binary(max_size=60))
def test_random_bytes_are_refused_or_a_request(api: Api, version: int, garbage: bytes) -> None:
    start = api.key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4)
    for frame in start + garbage, start + b"\xff\xff" + garbage, start + b"\xff\xff\x00" + garbage:
        try:
            _, request = decode_request(frame, "here")
        except ProtocolError:
            continue
        assert isinstance(request, api.request)


@pytest.mark.parametrize("frame", [b"", b"\x00\x00\x00\x07", b"\x00\x00\x00\x07\x00" + bytes(90)])
def test_an_invalid_response_is_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError, match="Fetch v12"):
        decode_response(FETCH, frame)
