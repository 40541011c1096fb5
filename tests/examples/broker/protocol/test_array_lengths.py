"""What kio must not see: arrays that claim more elements than there are bytes."""

import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.metadata.v0.request import MetadataRequest as MetadataRequestV0
from kio.schema.metadata.v13.request import MetadataRequest
from kio.schema.offset_fetch.v6.request import OffsetFetchRequest as OffsetFetchRequestV6
from kio.schema.produce.v3.request import ProduceRequest as ProduceRequestV3
from kio.serial import entity_reader

from examples.broker.protocol.apis import Api
from examples.broker.protocol.array_lengths import array_length_check
from examples.broker.protocol.errors import MalformedRequest
from examples.broker.protocol.versions import request_class
from tests.examples.broker.protocol.wire import SERVED, named, request_frame

HUGE = b"\xff\xff\xff\xff\x0f"  # 2**32 - 1 as a varint


@pytest.mark.parametrize(("api", "version"), SERVED, ids=named)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_a_sound_request_is_gone_through_to_its_end(
    api: Api[Any, Any], version: int, data: st.DataObject
) -> None:
    request = data.draw(st.from_type(request_class(api, version)))
    frame = request_frame(request)
    _, header_size = entity_reader(request.__header_schema__)(frame, 0)
    assert array_length_check(type(request))(frame, header_size) == len(frame)


@pytest.mark.parametrize(
    ("request_type", "frame"),
    [
        pytest.param(MetadataRequestV0, struct.pack(">i", 2**31 - 1), id="of entities"),
        pytest.param(MetadataRequest, HUGE, id="of entities, compact"),
        pytest.param(OffsetFetchRequestV6, b"\x02g\x02\x02t" + HUGE, id="of numbers, in an array"),
        pytest.param(ProduceRequestV3, struct.pack(">hhii", -1, 1, 0, 2**30), id="behind numbers"),
        pytest.param(MetadataRequestV0, struct.pack(">ih", 2, 0), id="that may not be much too long"),
        pytest.param(MetadataRequest, b"\xff\xff\xff\xff\xff\x01", id="longer than a length can be"),
    ],
)
def test_an_array_longer_than_the_rest_of_the_request_is_refused(request_type: Any, frame: bytes) -> None:
    with pytest.raises(MalformedRequest):
        array_length_check(request_type)(frame, 0)
