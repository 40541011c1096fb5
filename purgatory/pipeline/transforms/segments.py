"""Decodes the segments of a journal. A broken segment becomes one row with the reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from purgatory.journal.schema import SCHEMAS
from purgatory.journal.table import SCHEMA_VERSION, VERSION_KEY
from purgatory.pipeline.schemas import Table

# Rows that are passed to Spark at a time.
_CHUNK_ROWS: Final = 10_000

# In bytes, of the file, and of its columns when decompressed. A worker reads a segment as a whole.
LARGEST: Final = 1 << 30

# The columns before the recorded ones. The first row of each file is about the file, and has no position.
_ORIGIN: Final = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("position", pa.int64()),
        # The number of rows in the file; null if it cannot be read.
        pa.field("file_rows", pa.int64()),
        # Why the file cannot be read.
        pa.field("problem", pa.string()),
    ]
)


def read(files: DataFrame, table: Table) -> DataFrame:
    """The rows in the Parquet `files` (path), each with its origin. Any recorded column may be null.

    A file that cannot be read completely becomes one row with the reason. Spark's own reader would fail at
    such a file or skip it silently, and would read a missing column as null. A file that does not exist, or
    that the system refuses to read, is an error.
    """
    return files.select("path").mapInArrow(partial(read_files, table.name), _decoded_schema(table))


def decoded(files: DataFrame, table: Table) -> DataFrame:
    """As `read`, of files that have been read already (path, content)."""
    return files.select("path", "content").mapInArrow(partial(decode, table.name), _decoded_schema(table))


def read_files(name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The part of `read` that runs in the workers."""
    recorded = SCHEMAS[name]
    for batch in batches:
        for path in batch.column("path").to_pylist():
            size = os.stat(path).st_size
            if size > LARGEST:
                yield _about(path, None, f"unreadable: {_too_large(size)}", recorded)
            else:
                yield from _decoded(path, pa.py_buffer(Path(path).read_bytes()), recorded)


def decode(name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The part of `decoded` that runs in the workers."""
    for batch in batches:
        for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
            yield from _decoded(path.as_py(), content.as_buffer(), SCHEMAS[name])


def _decoded(source: str, content: pa.Buffer, recorded: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        rows = _rows(content, recorded)
    except MemoryError:
        # Not a fault of the file.
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        yield _about(source, None, f"unreadable: {error}".partition("\n")[0], recorded)
    else:
        yield _about(source, rows.num_rows, None, recorded)
        yield from _placed(source, rows, recorded)


def _decoded_schema(table: Table) -> StructType:
    recorded = [StructField(field.name, _nullable(field.dataType)) for field in table.recorded]
    return StructType([*from_arrow_schema(_ORIGIN), *recorded])


def _too_large(size: int) -> str:
    return f"it has {size:,} bytes, more than {LARGEST:,}; split it into several files"


def _nullable(kind: DataType) -> DataType:
    return ArrayType(kind.elementType) if isinstance(kind, ArrayType) else kind


def _rows(content: pa.Buffer, recorded: pa.Schema) -> pa.Table:
    """All rows of a file, with the journal's columns. Raises ValueError if they do not match the schema."""
    file = pq.ParquetFile(pa.BufferReader(content))
    size = sum(file.metadata.row_group(each).total_byte_size for each in range(file.num_row_groups))
    if size > LARGEST:
        raise ValueError(f"decompressed, {_too_large(size)}")
    rows = file.read()
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
    """Whether a type can be cast: the same kind of type, possibly wider, finer, or with a dictionary."""
    if pa.types.is_dictionary(found):
        return _fits(found.value_type, wanted)
    if pa.types.is_list(wanted):
        listed = pa.types.is_list(found) or pa.types.is_large_list(found)
        return listed and _fits(found.value_type, wanted.value_type)
    alike = (pa.types.is_integer, pa.types.is_timestamp, _is_text)
    return any(test(found) and test(wanted) for test in alike)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


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
    return pa.schema([*_ORIGIN, *(pa.field(field.name, field.type) for field in recorded)])
