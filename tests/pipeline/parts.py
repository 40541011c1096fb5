"""Runs the parts of an exchange without Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from purgatory.pipeline.exchange import Part

# Fewer rows than most tests have, so that a part merges what it condensed in several chunks.
CHUNK: Final = 3


def result(part: Part, rows: pa.Table, *, chunk: int = CHUNK) -> pa.Table:
    """What the part finds in the rows, condensed in chunks of so many, and merged by one task."""
    own = rows.select(part.reads.names).cast(part.reads)
    chunks = [own.slice(first, chunk) for first in range(0, own.num_rows, chunk)] or [own]
    return part.merge(pa.concat_tables(map(part.condense, chunks)).combine_chunks())
