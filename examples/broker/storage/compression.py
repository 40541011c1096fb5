"""The codecs of compressed record batches."""

import struct
from collections.abc import Callable, Mapping
from typing import Final

import cramjam

MOST_BYTES: Final = 64 << 20
"""The most bytes that a batch may have uncompressed, so that a small batch cannot exhaust the memory."""

# Java's clients cut the data into blocks, after a header of a magic number and two versions. Each block has
# its length before it. Other clients send one block without all that.
_SNAPPY_JAVA: Final = b"\x82SNAPPY\x00"
_SNAPPY_JAVA_HEADER_BYTES: Final = 16
_BLOCK_LENGTH: Final = struct.Struct(">i")


def decompress(codec: int, data: bytes) -> bytes:
    """Return the data uncompressed. ``codec`` is that of a batch's attributes, from 0 to 4.

    Raises ValueError when they are damaged, or have more than ``MOST_BYTES``.
    """
    try:
        return _DECOMPRESS[codec](data)
    except (cramjam.DecompressionError, struct.error) as error:
        raise ValueError(f"{len(data)} bytes cannot be decompressed: {error}") from error


def _streamed(into: Callable[[bytes, bytearray], int]) -> Callable[[bytes], bytes]:
    def decompress_stream(data: bytes) -> bytes:
        # The system gives it memory as it is written to.
        output = bytearray(MOST_BYTES)
        return bytes(memoryview(output)[: into(data, output)])

    return decompress_stream


def _snappy(data: bytes) -> bytes:
    if not data.startswith(_SNAPPY_JAVA):
        return _snappy_block(data, MOST_BYTES)
    blocks = bytearray()
    position = _SNAPPY_JAVA_HEADER_BYTES
    while position < len(data):
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if length < 1:
            raise ValueError(f"a block of {length} bytes")
        blocks += _snappy_block(data[position : position + length], MOST_BYTES - len(blocks))
        position += length
    return bytes(blocks)


def _snappy_block(data: bytes, most: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(data) > most:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    return bytes(cramjam.snappy.decompress_raw(data))


_DECOMPRESS: Final[Mapping[int, Callable[[bytes], bytes]]] = {
    0: lambda data: data,
    1: _streamed(cramjam.gzip.decompress_into),
    2: _snappy,
    3: _streamed(cramjam.lz4.decompress_into),
    4: _streamed(cramjam.zstd.decompress_into),
}
