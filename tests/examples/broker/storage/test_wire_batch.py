"""Kafka's record batches: parsing, refusals, and the fields that a leader sets."""

import struct
from collections.abc import Callable

import cramjam
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.record_batch import (
    EARLIEST_TIMESTAMP,
    MAX_TIMESTAMP,
    ProducerSequence,
    TimestampAndOffset,
)
from examples.broker.storage.wire_batch import WireRecordBatch, keys_and_values
from tests.examples.broker.wire_batches import wire_batch

LENGTH_AT, ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT, RECORD_COUNT_AT, RECORDS_AT = 8, 21, 23, 57, 61
GZIP, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 1, 8, 16, 32


def refusal(data: bytes) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        WireRecordBatch.parse(data)
    return refused.value.code


def patched(data: bytes, at: int, format: str, value: int) -> bytes:
    """Return the batch with another value in one field, and a matching checksum."""
    changed = bytearray(data)
    struct.pack_into(format, changed, at, value)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[ATTRIBUTES_AT:])))
    return bytes(changed)


def test_a_parsed_batch_has_the_facts_that_a_log_needs() -> None:
    data = wire_batch(b"one", b"two", b"three", producer=(7, 1, 40), timestamps=(5_000, 9_000, 7_000))
    batch = WireRecordBatch.parse(data)
    assert (batch.record_count, batch.data, batch.max_timestamp) == (3, data, 9_000)
    assert batch.producer == ProducerSequence(7, 1, first_sequence=40, last_sequence=42)
    assert WireRecordBatch.parse(wire_batch(b"one")).producer is None


def test_a_leader_sets_its_offset_and_epoch_and_no_other_bit() -> None:
    batch = WireRecordBatch.parse(wire_batch(b"one", b"two"))
    stored = batch.at(1_000, 5)
    assert (stored.base_offset, stored.next_offset, stored.leader_epoch) == (1_000, 1_002, 5)
    assert stored.data[8:12] + stored.data[16:] == batch.data[8:12] + batch.data[16:]
    assert WireRecordBatch.parse_all(stored.data) == (stored,)
    assert refusal(stored.data) is ErrorCode.invalid_record, "producers begin at 0"
    read = read_batch(stored.data, 0)[0]
    assert [record.value for record in read.records] == [b"one", b"two"]
    assert batch.base_offset == 0


def test_the_values_of_a_batch_are_those_that_its_producer_has_sent() -> None:
    values = (b"one", b"", b"x" * 1000)
    assert list(keys_and_values(wire_batch(*values, timestamps=(5, 1 << 40, 0)))) == [
        (None, value) for value in values
    ]


VALID = wire_batch(b"some value")
INVALID, CORRUPT = ErrorCode.invalid_record, ErrorCode.corrupt_message
TRANSACTION = ErrorCode.transactional_id_authorization_failed


def counted(records: int, last_offset_delta: int) -> bytes:
    data = patched(VALID, RECORD_COUNT_AT, ">i", records)
    return patched(data, LAST_OFFSET_DELTA_AT, ">i", last_offset_delta)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (VALID[:-1] + b"?", CORRUPT),
        *((VALID[:8] + struct.pack(">i", length) + VALID[12:], CORRUPT) for length in (-1, 0, 48)),
        *((VALID[:size], INVALID) for size in (0, 60, -1)),
        *((patched(VALID, 16, ">b", magic), INVALID) for magic in (0, 1, 3)),
        *((patched(VALID, ATTRIBUTES_AT, ">h", codec), INVALID) for codec in (5, 6, 7)),
        *(
            (counted(count, last), INVALID)
            for count, last in ((0, -1), (-1, -2), (2, 0), (1, 1), (1_000, 999))
        ),
        (counted(2**31 - 1, 2**31 - 2), INVALID),
        *((wire_batch(b"value", producer=producer), INVALID) for producer in ((7, -1, 0), (7, 0, -1))),
        (wire_batch(b"one") + wire_batch(b"two"), INVALID),
        (wire_batch(b"one") + b"?", INVALID),
        (wire_batch(b"value", producer=(7, 0, 0), attributes=CONTROL), INVALID),
        *(
            (wire_batch(b"value", producer=(7, 0, 0), attributes=attributes), TRANSACTION)
            for attributes in (TRANSACTIONAL, TRANSACTIONAL | CONTROL)
        ),
    ],
)
def test_what_is_not_exactly_one_good_batch_is_refused(data: bytes, code: ErrorCode) -> None:
    assert refusal(data) is code


def test_a_leader_sends_several_batches_and_the_last_may_be_cut_off() -> None:
    one, two = wire_batch(b"one"), wire_batch(b"two", b"three")
    assert [batch.data for batch in WireRecordBatch.parse_all(one + two)] == [one, two]
    for missing in (1, len(two) - 61, len(two) - 1):
        assert [batch.data for batch in WireRecordBatch.parse_all(one + two[:-missing])] == [one]
    assert WireRecordBatch.parse_all(b"") == ()
    with pytest.raises(ApiError, match="CORRUPT_MESSAGE"):
        WireRecordBatch.parse_all(one[:-1] + b"?" + two)


@given(st.binary(max_size=200), st.integers(0, 80), st.binary(min_size=1, max_size=8))
def test_random_bytes_are_a_batch_or_refused(tail: bytes, at: int, noise: bytes) -> None:
    valid = wire_batch(b"value", b"other")
    for data in (
        tail,
        valid[:at] + noise + valid[at + len(noise) :],
        patched(valid + tail, 8, ">i", len(valid + tail) - 12),
    ):
        try:
            batch = WireRecordBatch.parse(data)
        except ApiError:
            continue
        assert len(list(batch.timestamps())) in (0, 1, batch.record_count)


# Offsets by time


def log_of(*batches: bytes) -> PartitionLog:
    log = PartitionLog(1_000)
    for data in batches:
        log.append_as_leader(WireRecordBatch.parse(data), leader_epoch=3)
    return log


@pytest.mark.parametrize(
    ("codec", "compress"),
    [
        (1, cramjam.gzip.compress),
        (2, cramjam.snappy.compress_raw),
        (3, cramjam.lz4.compress),
        (4, cramjam.zstd.compress),
    ],
    ids=["gzip", "snappy", "lz4", "zstd"],
)
def test_the_first_record_at_a_timestamp_is_found_inside_a_compressed_batch(
    codec: int, compress: Callable[[bytes], bytes]
) -> None:
    plain = wire_batch(b"a", b"b", b"c", timestamps=(1_000, 3_000, 2_000))
    data = plain[:RECORDS_AT] + bytes(compress(plain[RECORDS_AT:]))
    data = patched(data, LENGTH_AT, ">i", len(data) - ATTRIBUTES_AT + 9)
    log = log_of(patched(data, ATTRIBUTES_AT, ">h", codec))
    assert log.offset_for_timestamp(1_000) == TimestampAndOffset(1_000, 0, 3)
    assert log.offset_for_timestamp(1_001) == TimestampAndOffset(3_000, 1, 3)
    assert log.offset_for_timestamp(MAX_TIMESTAMP) == TimestampAndOffset(3_000, 1, 3)


def test_an_unreadable_batch_stands_for_its_records() -> None:
    plain = wire_batch(b"a", b"b", timestamps=(1_000, 2_000))
    for attributes in (GZIP, LOG_APPEND_TIME):
        log = log_of(plain, patched(plain, ATTRIBUTES_AT, ">h", attributes))
        log.increment_log_start_offset(3)
        assert log.offset_for_timestamp(1_001) == TimestampAndOffset(2_000, 3, 3)


@pytest.mark.parametrize("damage", [b"\x01", b"\xff" * 12, b"\x00" * 3 + b"\x80" * 24])
def test_damaged_records_in_a_valid_batch_are_not_read(damage: bytes) -> None:
    """A negative length, an endless varint, and a length past the end of the batch."""
    data = wire_batch(b"a" * 20, b"b", timestamps=(1_000, 1_000))
    for index, byte in enumerate(damage):
        data = patched(data, RECORDS_AT + index, ">B", byte)
    assert log_of(data).offset_for_timestamp(1_000) == TimestampAndOffset(1_000, 0, 3)


def test_an_empty_log_has_a_start_and_no_record() -> None:
    log = PartitionLog(1_000)
    assert log.offset_for_timestamp(EARLIEST_TIMESTAMP) == TimestampAndOffset(-1, 0, -1)
    for timestamp in (MAX_TIMESTAMP, 0, -5):
        assert log.offset_for_timestamp(timestamp) is None
