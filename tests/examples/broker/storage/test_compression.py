"""Compressed batches: each codec, damage, and data that is too large."""

import gzip
import struct

import cramjam
import lz4.frame  # type: ignore[import-untyped]  # has no types
import pytest
import snappy  # type: ignore[import-untyped]  # has no types
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from examples.broker.storage import compression
from examples.broker.storage.compression import decompress

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
DATA = b"again and " * 1000


def in_java_blocks(*blocks: bytes) -> bytes:
    """What Java's snappy stream writes: a header, and blocks with their lengths."""
    compressed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
    header = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return header + b"".join(struct.pack(">i", len(block)) + block for block in compressed)


COMPRESSED = {
    "none": (NONE, DATA),
    "gzip": (GZIP, gzip.compress(DATA)),
    "snappy": (SNAPPY, snappy.compress(DATA)),
    "snappy of java": (SNAPPY, in_java_blocks(DATA[:300], DATA[300:])),
    "lz4": (LZ4, lz4.frame.compress(DATA)),
    "zstd": (ZSTD, zstandard.compress(DATA)),
}
damageable = pytest.mark.parametrize(("codec", "data"), [*COMPRESSED.values()][1:], ids=[*COMPRESSED][1:])


@pytest.mark.parametrize(("codec", "data"), COMPRESSED.values(), ids=COMPRESSED)
def test_what_other_libraries_have_compressed_is_read(codec: int, data: bytes) -> None:
    assert decompress(codec, data) == DATA


@damageable
def test_damaged_data_are_refused(codec: int, data: bytes) -> None:
    for damaged in (b"\xff" * 40, data[: len(data) // 2], data[:20]):
        with pytest.raises(ValueError, match="bytes"):
            decompress(codec, damaged)


@pytest.mark.parametrize("length", [0, -1, -(2**31)])
def test_a_block_of_no_length_ends_the_search(length: int) -> None:
    with pytest.raises(ValueError, match=f"a block of {length} bytes"):
        decompress(SNAPPY, in_java_blocks() + struct.pack(">i", length))


@damageable
def test_data_that_grow_too_large_are_refused(
    codec: int, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "MOST_BYTES", len(DATA) - 1)
    with pytest.raises(ValueError, match=r"write whole buffer|more than"):
        decompress(codec, data)
    monkeypatch.setattr(compression, "MOST_BYTES", len(DATA))
    assert decompress(codec, data) == DATA


@given(st.integers(1, 4), st.binary(max_size=100))
def test_random_bytes_are_read_or_refused(codec: int, data: bytes) -> None:
    try:
        decompress(codec, data)
    except ValueError:
        return
