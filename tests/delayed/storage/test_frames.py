"""Frames are found again, whatever lies between them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory.delayed.storage.frames import (
    HEADER_SIZE,
    MAX_ID,
    MAX_PAYLOAD,
    Damage,
    Frame,
    Kind,
    decode,
    encode,
    end_body,
    message_body,
    parse_body,
    scan,
)

SALT = 0x1234ABCD
BODIES = st.binary(max_size=60) | st.binary(max_size=20).map(lambda data: b"\x1a\xd3" + data)


def reader(data: bytes, piece: int | None = None) -> Callable[[int, int], bytes]:
    """Reads `data`, not more than `piece` bytes at a time."""
    return lambda offset, length: data[offset : offset + (length if piece is None else min(piece, length))]


def frames_of(bodies: list[bytes]) -> list[bytes]:
    return [encode(SALT, Kind.LATER, n, n, body) for n, body in enumerate(bodies)]


def bodies_in(data: bytes, piece: int | None = None) -> list[bytes]:
    return [found.body for found in scan(SALT, reader(data, piece)) if isinstance(found, Frame)]


@given(st.lists(BODIES), st.integers(1, 100))
def test_all_frames_are_found_and_nothing_else(bodies: list[bytes], piece: int) -> None:
    data = b"".join(frames_of(bodies))
    found = list(scan(SALT, reader(data, piece)))
    assert [frame.body for frame in found if isinstance(frame, Frame)] == bodies
    assert len(found) == len(bodies)
    ends = [0, *(frame.end for frame in found if isinstance(frame, Frame))]
    assert [frame.offset for frame in found] == ends[:-1]
    assert ends[-1] == len(data)


@given(st.lists(BODIES, min_size=1), st.data())
def test_a_torn_tail_is_cut_at_the_last_whole_frame(bodies: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(frames_of(bodies[:-1]))
    last = frames_of(bodies)[-1]
    cut = data.draw(st.integers(1, len(last) - 1))
    found = list(scan(SALT, reader(whole + last[:cut])))
    assert [frame.body for frame in found if isinstance(frame, Frame)] == bodies[:-1]
    assert found[-1] == Damage(len(whole), len(whole) + cut)


@given(st.lists(BODIES, min_size=1, max_size=6), st.data())
def test_flipped_bits_harm_their_own_frame_alone(bodies: list[bytes], data: st.DataObject) -> None:
    frames = frames_of(bodies)
    harmed = data.draw(st.integers(0, len(frames) - 1))
    flipped = bytearray(frames[harmed])
    flips = st.lists(st.tuples(st.integers(0, len(flipped) - 1), st.integers(1, 255)), min_size=1, max_size=3)
    for at, mask in data.draw(flips):
        flipped[at] ^= mask
    unharmed = bytes(flipped) == frames[harmed]
    before, behind = b"".join(frames[:harmed]), b"".join(frames[harmed + 1 :])
    found = list(scan(SALT, reader(before + bytes(flipped) + behind)))
    kept = [frame.body for frame in found if isinstance(frame, Frame)]
    assert kept == (bodies if unharmed else bodies[:harmed] + bodies[harmed + 1 :])
    damages = [damage for damage in found if isinstance(damage, Damage)]
    assert damages == ([] if unharmed else [Damage(len(before), len(before) + len(flipped))])


@given(st.lists(BODIES | st.just(b""), max_size=5), st.binary(min_size=1, max_size=40), st.integers(1, 50))
def test_frames_around_garbage_are_found(bodies: list[bytes], garbage: bytes, piece: int) -> None:
    data = garbage.join([b"", *frames_of(bodies), b""])
    assert bodies_in(data, piece) == bodies


@given(st.lists(BODIES, min_size=1, max_size=3), st.integers(0, HEADER_SIZE - 1))
def test_a_payload_of_frames_is_not_taken_apart_when_its_own_frame_is_damaged(
    bodies: list[bytes], at: int
) -> None:
    """They are frames of another store. Those of this one have a salt that nobody knows."""
    inner = b"".join(encode(SALT ^ 1, Kind.CANCELLED, 0, 0, body) for body in bodies)
    outer = bytearray(encode(SALT, Kind.LATER, 0, 0, inner))
    outer[at] ^= 0xFF
    after = encode(SALT, Kind.LATER, 1, 1, b"after")
    assert bodies_in(bytes(outer) + after) == [b"after"]


def test_a_frame_longer_than_a_read_is_found() -> None:
    bodies = [b"small", Random(0).randbytes(3 << 20), b"last"]
    assert bodies_in(b"".join(frames_of(bodies))) == bodies


def test_a_damaged_length_does_not_hide_what_follows() -> None:
    frames = frames_of([b"first", b"second", b"third"])
    damaged = bytearray(frames[0])
    # The frame claims to reach far behind the end of the file.
    damaged[2:6] = (MAX_PAYLOAD - 1).to_bytes(4, "little")
    assert bodies_in(bytes(damaged) + frames[1] + frames[2]) == [b"second", b"third"]
    # No frame can be that long.
    damaged[2:6] = b"\xff\xff\xff\xff"
    assert bodies_in(bytes(damaged) + frames[1] + frames[2]) == [b"second", b"third"]


def test_other_threads_run_while_many_frames_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(encode(SALT, Kind.DELIVERED, 0, token, end_body(False)) for token in range(5_000))
    scanned, pauses = 0, [0]
    monkeypatch.setattr("purgatory.delayed.storage.frames.sleep", lambda seconds: pauses.append(scanned))
    for _ in scan(SALT, reader(data)):
        scanned += 1
    assert scanned == 5_000
    assert max(after - before for before, after in pairwise([*pauses, scanned])) < 1_000


def test_the_longest_dead_letter_is_a_frame() -> None:
    body = bytes(2 + 1_000) + message_body("i" * MAX_ID, bytes(MAX_PAYLOAD))
    data = encode(SALT, Kind.DEAD, 0, 0, body)
    [frame] = decode(SALT, data, 0, 0)
    assert frame.end == len(data)


@pytest.mark.parametrize(("id", "payload"), [(None, b""), (None, b"payload"), ("id", b""), ("ß" * 512, b"x")])
def test_a_body_keeps_the_id_and_the_payload(id: str | None, payload: bytes) -> None:
    [frame] = decode(SALT, encode(SALT, Kind.LATER, 0, 0, message_body(id, payload)), 0, 0)
    assert parse_body(frame.body) == (id, payload)
    assert frame.named is (id is not None)


def test_the_body_of_an_end_says_whether_the_user_chose_the_id() -> None:
    for named in (False, True):
        [frame] = decode(SALT, encode(SALT, Kind.DELIVERED, 0, 0, end_body(named)), 0, 0)
        assert frame.named is named
