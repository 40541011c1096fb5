"""Reads the segments of a journal. A segment is read whole, or refused with a reason."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from purgatory import PurgatoryError, __version__
from purgatory.journal.schema import LATER, SCHEMAS
from purgatory.journal.table import SCHEMA_VERSION, VERSION_KEY, WRITER_KEY
from purgatory.pipeline import locations
from purgatory.pipeline.columns import fitted
from purgatory.pipeline.schemas import Table
from purgatory.pipeline.text import printable

# The largest file, and the largest content of a file, in bytes. A worker reads a segment as a whole.
LARGEST: Final = 1 << 30


class UnreadableError(PurgatoryError):
    """Raised when a segment cannot be read completely. The message is the reason."""


def content_of(path: str) -> pa.Buffer:
    """The bytes of a segment. Raises UnreadableError, and FileNotFoundError if it is gone."""
    try:
        with locations.opened(path) as file:
            size = file.seek(0, os.SEEK_END)
            if size > LARGEST:
                raise UnreadableError(f"unreadable: {_too_large(size)}")
            file.seek(0)
            return pa.py_buffer(file.read())
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno is None:
            # The client of a store gives no number. The next try may succeed.
            raise
        raise UnreadableError(f"unreadable: {error.strerror}") from error


def rows_in(content: pa.Buffer, table: Table) -> pa.Table:
    """All rows of a segment, with the recorded columns. Any column may have nulls.

    Raises UnreadableError. Spark's own reader would fail at a broken file or skip it silently, and would read
    a missing column as null.
    """
    try:
        return _rows(content, SCHEMAS[table.name], LATER[table.name])
    except MemoryError:
        # This is no fault of the file.
        raise
    except Exception as error:
        # A damaged or foreign file may raise anything. It must not stop those who read other files.
        raise UnreadableError(printable(f"unreadable: {error}".partition("\n")[0])) from error


def _too_large(size: int) -> str:
    return f"it has {size:,} bytes, more than {LARGEST:,}; split it into several files"


def _rows(content: pa.Buffer, recorded: pa.Schema, later: Set[str]) -> pa.Table:
    """All rows of a file, with the journal's columns, of which it may lack those that came later.

    Raises ValueError if the columns do not match the schema.
    """
    file = pq.ParquetFile(pa.BufferReader(content))
    size = sum(file.metadata.row_group(each).total_byte_size for each in range(file.num_row_groups))
    if size > LARGEST:
        raise ValueError(f"decompressed, {_too_large(size)}")
    # One thread is enough, because Spark gives each core a task.
    rows = file.read(use_threads=False)
    _check_version(rows.schema.metadata or {})
    missing = [name for name in recorded.names if name not in rows.column_names and name not in later]
    if missing:
        raise ValueError(f"it has no column {', '.join(missing)}")
    for field in recorded:
        found = [column.type for column in rows.schema if column.name == field.name]
        if len(found) > 1:
            raise ValueError(f"it has the column {field.name} {len(found)} times")
        if found and not _fits(found[0], field.type):
            raise ValueError(f"its column {field.name} is {found[0]}, not {field.type}")
    # A null is no fault of the file: `validation` refuses rows one by one.
    whole = fitted(rows, pa.schema([(field.name, field.type) for field in recorded]))
    # This finds text that is not UTF-8, and lists that overlap.
    whole.validate(full=True)
    return whole


def _check_version(metadata: Mapping[bytes, bytes]) -> None:
    """Raise ValueError if this version of purgatory does not know the format of the file."""
    version = metadata.get(VERSION_KEY, str(SCHEMA_VERSION).encode()).decode(errors="replace")
    if version != str(SCHEMA_VERSION):
        writer = metadata.get(WRITER_KEY, b"of another version").decode(errors="replace")
        raise ValueError(
            f"purgatory {writer} wrote it in format {version}, and this version, {__version__}, reads format "
            f"{SCHEMA_VERSION}; install that version here"
        )


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
