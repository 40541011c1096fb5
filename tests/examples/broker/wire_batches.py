"""Record batches in Kafka's format, encoded by kio and not by the code under test."""

import io
from datetime import UTC, datetime
from typing import Final

from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

NO_PRODUCER: Final = (-1, -1, -1)


def wire_batch(
    *values: bytes,
    producer: tuple[int, int, int] = NO_PRODUCER,
    attributes: int = 0,
    timestamps: tuple[int, ...] = (),
) -> bytes:
    """Return a batch with one record for each value.

    ``producer`` is id, epoch and first sequence. Timestamps are in milliseconds.
    """
    producer_id, producer_epoch, base_sequence = producer
    times = timestamps or (1_000_000,) * len(values)
    buffer = io.BytesIO()
    write_new_batch(
        buffer,
        NewRecordBatch(
            producer_id=i64(producer_id),
            producer_epoch=i16(producer_epoch),
            base_sequence=i32(base_sequence),
            attributes=i16(attributes),
            records=tuple(
                Record(
                    attributes=i8(0),
                    timestamp=TZAwareMicros.parse(datetime.fromtimestamp(time / 1000, UTC)),
                    offset=i64(index),
                    key=None,
                    value=value,
                    headers=(),
                )
                for index, (value, time) in enumerate(zip(values, times, strict=True))
            ),
        ),
    )
    return buffer.getvalue()
