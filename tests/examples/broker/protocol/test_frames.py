"""Frames from any chunks of bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.broker.errors import ProtocolError
from examples.broker.protocol.frames import FrameBuffer
from tests.examples.broker.protocol.wire_messages import with_size


@settings(max_examples=50)
@given(st.lists(st.binary(min_size=8, max_size=40)), st.data())
def test_frames_are_complete_and_in_order_for_any_chunks(frames: list[bytes], data: st.DataObject) -> None:
    sent = b"".join(map(with_size, frames))
    buffer = FrameBuffer(8, 40)
    taken = []
    while sent:
        cut = data.draw(st.integers(1, len(sent)))
        buffer.feed(sent[:cut])
        sent = sent[cut:]
        while (frame := buffer.take()) is not None:
            taken.append(frame)
    assert taken == frames
    assert len(buffer) == 0


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 7, 41, 2**31 - 1])
def test_an_invalid_frame_size_is_refused_by_the_prefix_alone(size: int) -> None:
    buffer = FrameBuffer(8, 40)
    buffer.feed(size.to_bytes(4, "big", signed=True))
    with pytest.raises(ProtocolError, match=f"of {size} bytes"):
        buffer.take()


@pytest.mark.parametrize(
    ("start", "name"),
    [
        *((bytes.fromhex(hello), "TLS") for hello in ("160301", "160303")),
        *((f"{method} / HTTP/1.1".encode(), "HTTP") for method in ("GET", "POST", "CONNECT", "DELETE")),
        (b"PRI * HTTP/2.0", "HTTP"),
    ],
)
def test_another_protocol_is_called_by_its_name(start: bytes, name: str) -> None:
    buffer = FrameBuffer(8, 100 * 1024 * 1024)
    buffer.feed(start + bytes(4))
    with pytest.raises(ProtocolError, match=name):
        buffer.take()


def test_the_buffer_holds_only_received_bytes() -> None:
    buffer = FrameBuffer(8, 2**30)
    buffer.feed((2**30).to_bytes(4, "big") + b"begun")
    assert buffer.take() is None
    assert len(buffer) == 9
    assert repr(buffer) == "<FrameBuffer of 9 bytes>"
