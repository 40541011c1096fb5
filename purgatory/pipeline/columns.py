"""Columns that came later: files of an older version lack them, and files of a newer one have more."""

from __future__ import annotations

import pyarrow as pa


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of the schema. A column that they lack is null; other columns are left out.

    Raises ValueError if a column has nulls that may have none, or cannot be cast.
    """
    known = set(rows.column_names)
    columns = [
        rows[field.name] if field.name in known else pa.nulls(rows.num_rows, field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, names=schema.names).cast(schema)
