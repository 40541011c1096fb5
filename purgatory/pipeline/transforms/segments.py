"""Decodes the segments of a journal. A broken segment becomes one row with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from purgatory.journal.schema import SCHEMAS
from purgatory.journal.table import SCHEMA_VERSION, VERSION_KEY
from purgatory.pipeline.schemas import Table

# Rows that are passed to Spark at a time.
_CHUNK_ROWS: Final = 10_000

# The columns before the recorded ones. The first row of each file is about the file, and has no position.
_ORIGIN: Final = StructType(
    [
        StructField("source", StringType()),
        StructField("position", LongType()),
        # The number of rows in the file; null if it cannot be read.
        StructField("file_rows", LongType()),
        # Why the file cannot be read.
        StructField("problem", StringType()),
    ]
)
_ARROW_ORIGIN: Final = (
    pa.field("source", pa.string()),
    pa.field("position", pa.int64()),
    pa.field("file_rows", pa.int64()),
    pa.field("problem", pa.string()),
)


def decoded(files: DataFrame, table: Table) -> DataFrame:
    """The rows in Parquet `files` (path, content), each with its origin. Any recorded column may be null.

    A file that cannot be read completely becomes one row with the reason. Spark's own reader would fail at
    such a file or skip it silently, and would read a missing column as null.
    """
    recorded = [StructField(field.name, _nullable(field.dataType)) for field in table.recorded]
    return files.select("path", "content").mapInArrow(
        partial(decode, table.name), StructType([*_ORIGIN, *recorded])
    )


def decode(name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The part of `decoded` that runs in the workers."""
    recorded = SCHEMAS[name]
    for batch in batches:
        for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
            source = path.as_py()
            try:
                rows = _rows(content.as_buffer(), recorded)
            except MemoryError:
                # Not a fault of the file.
                raise
            except (pa.ArrowException, OSError, ValueError) as error:
                yield _about(source, None, f"unreadable: {error}".partition("\n")[0], recorded)
            else:
                yield _about(source, rows.num_rows, None, recorded)
                yield from _placed(source, rows, recorded)


def _nullable(kind: DataType) -> DataType:
    return ArrayType(kind.elementType) if isinstance(kind, ArrayType) else kind


def _rows(content: pa.Buffer, recorded: pa.Schema) -> pa.Table:
    """All rows of a file, with the journal's columns. Raises ValueError if they do not match the schema."""
    rows = pq.read_table(pa.BufferReader(content))
    version = (rows.schema.metadata or {}).get(VERSION_KEY)
    if version not in (None, str(SCHEMA_VERSION).encode()):
        raise ValueError(f"its version is {version.decode(errors='replace')}, not {SCHEMA_VERSION}")
    missing = [name for name in recorded.names if name not in rows.column_names]
    if missing:
        raise ValueError(f"it has no column {', '.join(missing)}")
    columns = []
    for field in recorded:
        column = rows.column(field.name)
        if not _fits(column.type, field.type):
            raise ValueError(f"its column {field.name} is {column.type}, not {field.type}")
        columns.append(column.cast(field.type))
    whole = pa.Table.from_arrays(columns, names=recorded.names)
    # Finds text that is not UTF-8, and lists that overlap.
    whole.validate(full=True)
    return whole


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type can be cast: the same kind of type, possibly wider or finer."""
    alike = (
        pa.types.is_integer,
        pa.types.is_timestamp,
        lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    )
    if pa.types.is_list(wanted):
        return pa.types.is_list(found) and _fits(found.value_type, wanted.value_type)
    return any(test(found) and test(wanted) for test in alike)


def _placed(source: str, rows: pa.Table, recorded: pa.Schema) -> Iterator[pa.RecordBatch]:
    position = 0
    for batch in rows.to_batches(max_chunksize=_CHUNK_ROWS):
        count = batch.num_rows
        origin = [
            pa.repeat(pa.scalar(source, pa.string()), count),
            pa.array(range(position, position + count), pa.int64()),
            pa.nulls(count, pa.int64()),
            pa.nulls(count, pa.string()),
        ]
        yield pa.RecordBatch.from_arrays([*origin, *batch.columns], schema=_schema(recorded))
        position += count


def _about(source: str, rows: int | None, problem: str | None, recorded: pa.Schema) -> pa.RecordBatch:
    values = [source, None, rows, problem, *[None] * len(recorded)]
    schema = _schema(recorded)
    arrays = [pa.array([value], field.type) for value, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _schema(recorded: pa.Schema) -> pa.Schema:
    return pa.schema([*_ARROW_ORIGIN, *(pa.field(field.name, field.type) for field in recorded)])
