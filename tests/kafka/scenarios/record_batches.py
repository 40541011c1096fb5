"""Record batches as a producer sends them, and faults in them."""

import gzip
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import cramjam
import lz4.frame  # type: ignore[import-untyped]  # has no types
from crc32c import crc32c

Record = tuple[bytes | None, bytes | None]
"""The key and the value."""

CODECS: Final[Mapping[str, tuple[int, Callable[[bytes], bytes]]]] = {
    "none": (0, bytes),
    "gzip": (1, lambda data: gzip.compress(data, mtime=0)),
    "snappy": (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4": (3, lambda data: lz4.frame.compress(data, block_linked=False)),
    "zstd": (4, lambda data: bytes(cramjam.zstd.compress(data))),
}
TIME: Final = 1_700_000_000_000
NO_PRODUCER: Final = (-1, -1, -1)

# From the attributes on, which the checksum covers.
_COVERED: Final = struct.Struct(">hiqqqhii")
_UNCOVERED: Final = struct.Struct(">qiibI")
_LENGTH_COUNTS_FROM: Final = 12
_OF_THE_LENGTH: Final = slice(8, 12)


def batch(
    *values: bytes | None,
    key: bytes | None = b"key",
    timestamps: Sequence[int] = (),
    codec: str = "none",
    producer: tuple[int, int, int] = NO_PRODUCER,
    attributes: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    magic: int = 2,
    last_offset_delta: int | None = None,
    record_count: int | None = None,
    max_timestamp: int | None = None,
    payload: bytes | None = None,
    headers: Sequence[Record] = (),
) -> bytes:
    """Return a batch with a record for each value. ``producer`` is id, epoch and first sequence.

    ``payload`` takes the place of the records.
    """
    times = list(timestamps) or [TIME + index for index in range(len(values))]
    base_timestamp = times[0] if times else TIME
    number, compress = CODECS[codec]
    records = b"".join(
        _record(index, time - base_timestamp, key, value, headers)
        for index, (value, time) in enumerate(zip(values, times, strict=True))
    )
    covered = _COVERED.pack(
        attributes | number,
        len(values) - 1 if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        max(times, default=TIME) if max_timestamp is None else max_timestamp,
        *producer,
        len(values) if record_count is None else record_count,
    ) + (compress(records) if payload is None else payload)
    length = _UNCOVERED.size - _LENGTH_COUNTS_FROM + len(covered)
    return _UNCOVERED.pack(base_offset, length, leader_epoch, magic, crc32c(covered)) + covered


def damaged(data: bytes) -> bytes:
    """Return the batch with another last byte, so that the checksum is wrong."""
    return data[:-1] + bytes([data[-1] ^ 1])


def with_length(data: bytes, length: int) -> bytes:
    """Return the batch with another length in its header."""
    changed = bytearray(data)
    changed[_OF_THE_LENGTH] = struct.pack(">i", length)
    return bytes(changed)


def _record(
    offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, headers: Sequence[Record]
) -> bytes:
    body = b"\0" + _varint(timestamp_delta) + _varint(offset_delta) + _bytes(key) + _bytes(value)
    body += _varint(len(headers)) + b"".join(_bytes(name) + _bytes(value) for name, value in headers)
    return _varint(len(body)) + body


def _bytes(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
