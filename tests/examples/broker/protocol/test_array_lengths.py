"""The check before kio: arrays with more elements than bytes, and strings that are too long."""

import io
import struct
from contextlib import suppress
from typing import Any

import pytest
from kio.schema.fetch.v12.request import FetchRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.metadata.v0.request import MetadataRequest as MetadataRequestV0
from kio.schema.metadata.v13.request import MetadataRequest
from kio.schema.offset_fetch.v6.request import OffsetFetchRequest as OffsetFetchRequestV6
from kio.schema.produce.v3.request import ProduceRequest as ProduceRequestV3
from kio.serial import entity_reader, entity_writer

from examples.broker.errors import ProtocolError
from examples.broker.protocol.apis import Api
from examples.broker.protocol.array_lengths import array_length_check
from examples.broker.protocol.codec import decode_request
from examples.broker.protocol.versions import request_class
from tests.examples.broker.protocol.plain_messages import message
from tests.examples.broker.protocol.wire_messages import SERVED, emptied, filled, named, request_frame

HUGE = b"\xff\xff\xff\xff\x0f"  # 2**32 - 1 as a varint


@pytest.mark.parametrize(("api", "version"), SERVED, ids=named)
def test_the_check_passes_a_valid_request_to_its_end(api: Api, version: int) -> None:
    request_type: Any = request_class(api, version)
    for request in (filled(request_type), emptied(filled(request_type))):
        frame = request_frame(request)
        _, header_size = entity_reader(request.__header_schema__)(frame, 0)
        assert array_length_check(request_type)(frame, header_size) == len(frame)


@pytest.mark.parametrize(("api", "version"), SERVED, ids=named)
def test_a_request_with_any_byte_changed_is_harmless(api: Api, version: int) -> None:
    """Each byte in turn is set to a value that makes a length large.

    Without the check, this ends the process.
    """
    frame = request_frame(filled(request_class(api, version)))
    for position in range(8, len(frame)):
        for change in b"\x7f", b"\xff", b"\xff\xff\xff\xff\x0f":
            with suppress(ProtocolError):
                decode_request(frame[:position] + change + frame[position + len(change) :], "here")


@pytest.mark.parametrize(
    ("request_type", "frame"),
    [
        pytest.param(MetadataRequestV0, struct.pack(">i", 2**31 - 1), id="of entities"),
        pytest.param(MetadataRequest, HUGE, id="of entities, compact"),
        pytest.param(OffsetFetchRequestV6, b"\x02g\x02\x02t" + HUGE, id="of numbers, in an array"),
        pytest.param(ProduceRequestV3, struct.pack(">hhii", -1, 1, 0, 2**30), id="behind numbers"),
        pytest.param(MetadataRequestV0, struct.pack(">i", 1), id="of one, where nothing follows"),
        pytest.param(MetadataRequest, b"\xff\xff\xff\xff\xff\x01", id="longer than a length can be"),
    ],
)
def test_an_array_longer_than_the_rest_of_the_request_is_refused(request_type: Any, frame: bytes) -> None:
    with pytest.raises(ValueError, match=r"an array of \d+ elements in \d bytes|a number of more"):
        array_length_check(request_type)(frame, 0)


def test_a_compact_string_has_the_same_limit_as_other_strings() -> None:
    def checked(size: int) -> bool:
        buffer = io.BytesIO()
        entity_writer(HeartbeatRequest)(buffer, message(HeartbeatRequest, {"group_id": "g" * size}))
        return array_length_check(HeartbeatRequest)(buffer.getvalue(), 0) == buffer.tell()

    assert checked(2**15 - 1)
    with pytest.raises(ValueError, match="a string of 32768 bytes"):
        checked(2**15)


def test_a_tagged_field_must_have_its_stated_size() -> None:
    buffer = io.BytesIO()
    entity_writer(FetchRequest)(buffer, message(FetchRequest, {"cluster_id": "cluster"}))
    frame = buffer.getvalue()
    check = array_length_check(FetchRequest)
    assert check(frame, 0) == len(frame)
    tag_and_size = frame.index(b"\x00\x08\x08cluster")
    shorter = frame[: tag_and_size + 1] + b"\x07" + frame[tag_and_size + 2 :]
    with pytest.raises(ValueError, match="7 bytes"):
        check(shorter, 0)
