"""Kafka's record batch in format version 2, the same bytes on the wire and in the log."""

import struct
from collections.abc import Iterator
from typing import Final, Self

from crc32c import crc32c

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.compression import decompress
from examples.broker.storage.producer_state import increment_sequence
from examples.broker.storage.record_batch import ProducerSequence, RecordBatch

# base offset, batch length, partition leader epoch, magic, crc, attributes, last offset delta,
# base timestamp, max timestamp, producer id, producer epoch, base sequence, record count
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
# The batch length counts the bytes after itself. The CRC covers the bytes from the attributes on.
_LENGTH_COUNTS_FROM: Final = 12
_CRC_COVERS_FROM: Final = 21
_CRC_AT: Final = 17
_BASE_TIMESTAMP_AT: Final = 27
_MAX_TIMESTAMP_AT: Final = 35
_MAGIC: Final = 2
# A record without key, value and headers: one byte each for length, attributes, timestamp delta, offset
# delta, key length, value length and header count.
_LEAST_RECORD_BYTES: Final = 7
_COMPRESSION: Final = 0b0000_0111
_KNOWN_CODECS: Final = 4
_LOG_APPEND_TIME: Final = 0b0000_1000
_TRANSACTIONAL: Final = 0b0001_0000
_CONTROL: Final = 0b0010_0000


class WireRecordBatch(RecordBatch):
    """A batch in Kafka's own bytes. A leader writes its base offset and leader epoch.

    The checksum covers neither of the two, so a leader can set them in place. It covers the time of the
    append, which a leader writes only where the topic wants it.
    """

    __slots__ = ()

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Parse ``data``, which a producer sends as exactly one batch.

        Raises ApiError CORRUPT_MESSAGE when the bytes are damaged, INVALID_RECORD when they are not exactly
        one batch, or have an older format, and TRANSACTIONAL_ID_AUTHORIZATION_FAILED when they belong to a
        transaction, which this broker does not serve.
        """
        if len(data) < _HEADER.size or _size_of(data, 0) != len(data):
            raise ApiError(ErrorCode.invalid_record, f"{len(data)} bytes are not exactly one batch")
        batch = cls._parse(data)
        if batch.base_offset:
            raise ApiError(ErrorCode.invalid_record, f"the first offset is {batch.base_offset}, and not 0")
        return batch

    @classmethod
    def parse_all(cls, data: bytes) -> tuple[Self, ...]:
        """Parse the consecutive batches in ``data``. A last batch that is cut off is left out.

        Raises ApiError as ``parse`` does.
        """
        batches: list[Self] = []
        start = 0
        while start + _HEADER.size <= len(data):
            stop = start + _size_of(data, start)
            if stop > len(data):
                break
            batches.append(cls._parse(data[start:stop]))
            start = stop
        return tuple(batches)

    @classmethod
    def _parse(cls, data: bytes) -> Self:
        (
            base_offset,
            _,
            leader_epoch,
            _,
            crc,
            attributes,
            last_offset_delta,
            _,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        ) = _HEADER.unpack_from(data)
        if crc32c(memoryview(data)[_CRC_COVERS_FROM:]) != crc:
            raise ApiError(ErrorCode.corrupt_message, f"{len(data)} bytes do not have the checksum {crc:#x}")
        if record_count < 1 or last_offset_delta != record_count - 1:
            raise ApiError(
                ErrorCode.invalid_record, f"{record_count} records at offsets 0 to {last_offset_delta}"
            )
        codec = attributes & _COMPRESSION
        if codec > _KNOWN_CODECS:
            raise ApiError(ErrorCode.invalid_record, f"unknown compression codec {codec}")
        if not codec and record_count * _LEAST_RECORD_BYTES > len(data) - _HEADER.size:
            raise ApiError(
                ErrorCode.invalid_record, f"{record_count} records do not fit into {len(data)} bytes"
            )
        if attributes & _TRANSACTIONAL:
            raise ApiError(ErrorCode.transactional_id_authorization_failed, "transactions are not served")
        if attributes & _CONTROL:
            raise ApiError(ErrorCode.invalid_record, "clients write no control records")
        producer = None
        if producer_id >= 0:
            if producer_epoch < 0 or base_sequence < 0:
                raise ApiError(
                    ErrorCode.invalid_record,
                    f"producer {producer_id} with epoch {producer_epoch} and sequence {base_sequence}",
                )
            last_sequence = increment_sequence(base_sequence, last_offset_delta)
            producer = ProducerSequence(producer_id, producer_epoch, base_sequence, last_sequence)
        return cls(record_count, data, base_offset, leader_epoch, producer, max_timestamp)

    def data_at(self, base_offset: int, leader_epoch: int) -> bytes:
        data = bytearray(self.data)
        struct.pack_into(">q", data, 0, base_offset)
        struct.pack_into(">i", data, _LENGTH_COUNTS_FROM, leader_epoch)
        return bytes(data)

    def data_appended_at(self, wall_time: int) -> bytes:
        data = bytearray(self.data)
        (attributes,) = struct.unpack_from(">h", data, _CRC_COVERS_FROM)
        struct.pack_into(">h", data, _CRC_COVERS_FROM, attributes | _LOG_APPEND_TIME)
        struct.pack_into(">q", data, _MAX_TIMESTAMP_AT, wall_time)
        struct.pack_into(">I", data, _CRC_AT, crc32c(memoryview(data)[_CRC_COVERS_FROM:]))
        return bytes(data)

    def timestamps(self) -> Iterator[tuple[int, int]]:
        """As ``RecordBatch.timestamps``. The records of a damaged batch are unreadable.

        A compressed batch is decompressed for it.
        """
        (attributes,) = struct.unpack_from(">h", self.data, _CRC_COVERS_FROM)
        if attributes & _LOG_APPEND_TIME:
            return super().timestamps()
        try:
            records = decompress(attributes & _COMPRESSION, self.data[_HEADER.size :])
            return iter(self._record_timestamps(records))
        except (IndexError, ValueError):
            return super().timestamps()

    def _record_timestamps(self, records: bytes) -> list[tuple[int, int]]:
        (base_timestamp,) = struct.unpack_from(">q", self.data, _BASE_TIMESTAMP_AT)
        found: list[tuple[int, int]] = []
        position = 0
        for offset in range(self.base_offset, self.next_offset):
            length, start = _varint(records, position)
            if length < 0:
                raise ValueError(f"a record of length {length}")
            # One byte of attributes comes first.
            timestamp_delta, _ = _varint(records, start + 1)
            found.append((offset, base_timestamp + timestamp_delta))
            position = start + length
        return found


def keys_and_values(data: bytes) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Return the key and the value of each record of an uncompressed batch, which must be well-formed.

    It takes an eighth of the time of kio's ``read_batch``, which also makes timestamps and headers.
    """
    position = _HEADER.size
    while position < len(data):
        length, start = _varint(data, position)
        # One byte of attributes comes first.
        _, after_timestamp = _varint(data, start + 1)
        _, after_offset = _varint(data, after_timestamp)
        key, after_key = _nullable_bytes(data, after_offset)
        value, _ = _nullable_bytes(data, after_key)
        yield key, value
        position = start + length


def _nullable_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, start = _varint(data, position)
    return (None, start) if length < 0 else (data[start : start + length], start + length)


def _size_of(data: bytes, start: int) -> int:
    if len(data) - start < _HEADER.size:
        raise ApiError(ErrorCode.corrupt_message, f"{len(data) - start} bytes do not hold a batch's header")
    _, length, _, magic, *_ = _HEADER.unpack_from(data, start)
    if magic != _MAGIC:
        raise ApiError(
            ErrorCode.invalid_record, f"a batch in format {magic}, but only format {_MAGIC} is served"
        )
    if length < _HEADER.size - _LENGTH_COUNTS_FROM:
        raise ApiError(ErrorCode.corrupt_message, f"a batch of length {length}")
    return _LENGTH_COUNTS_FROM + int(length)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint (as in Protocol Buffers) and the position after it.

    Raises ValueError above 64 bits.
    """
    value = 0
    for shift in range(0, 64, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise ValueError("a number of more than 64 bits")
