"""Files as they lie in journals that people and other programs have handled: damaged, foreign and odd."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from purgatory.journal.schema import GAPS, OPERATIONS
from purgatory.journal.table import VERSION_KEY
from tests.pipeline.journals import ROWS, operation, segment

_Draw = random.Random


def odd_files(directory: Path, count: int, seed: int = 1) -> set[int]:
    """Write so many files. Returns the ids of the operations of the node ``good``, all of which are valid.

    Files whose name begins with "bad" cannot be read. Others may be read or not.
    """
    directory.mkdir(parents=True)
    draw = random.Random(seed)
    good: set[int] = set()
    for number in range(count):
        kinds = ("good", "bad", "odd")
        kind = draw.choice(kinds)
        # The last is a duplicate.
        rows = [operation(number * 10 + each, node=kind) for each in (1, 2, 2)]
        name = f"{kind}-{number}"
        if kind == "good":
            good |= {row["operation_id"] for row in rows}
            name, content = draw.choice(_NAMES).format(name), draw.choice(_GOOD)(segment(OPERATIONS, rows))
        elif kind == "bad":
            content = draw.choice(_BAD)(segment(OPERATIONS, rows))
        else:
            content = _flipped(_file(segment(OPERATIONS, rows)), draw)
        (directory / f"{name}.parquet").write_bytes(content)
    return good


_NAMES: Final = (
    "{}",
    "{} with spaces",
    "{}\udce9",
    "{}%20",
    "{}\n",
    "{}*[a]{{b}}",
    "{}:\\",
    "{}-é-\N{SNOWMAN}",
)


def _file(rows: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, **options)
    return buffer.getvalue()


def _changed(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)


# Each writes rows that can be read.
_GOOD: Final[tuple[Callable[[pa.Table], bytes], ...]] = (
    _file,
    lambda rows: _file(rows, compression="gzip", row_group_size=1),
    lambda rows: _file(rows.append_column("more", pa.array([{"a": 1}] * 3))),
    lambda rows: _file(rows.select(sorted(rows.column_names, reverse=True))),
    lambda rows: _file(_changed(rows, "kind", rows["kind"].dictionary_encode())),
    lambda rows: _file(_changed(rows, "tries", rows["tries"].cast(pa.int64()))),
    lambda rows: _file(rows, use_deprecated_int96_timestamps=True),
    lambda rows: _file(rows.replace_schema_metadata({"pandas": "no JSON"})),
)

# Each makes a file that cannot be read.
_BAD: Final[tuple[Callable[[pa.Table], bytes], ...]] = (
    lambda rows: b"",
    lambda rows: b"PAR1",
    lambda rows: b"PAR1PAR1",
    lambda rows: os.urandom(1000),
    lambda rows: b"PAR1" + bytes(1000) + b"PAR1",
    lambda rows: _file(rows)[:-9],
    lambda rows: _file(rows)[: len(_file(rows)) // 2],
    lambda rows: _file(rows)[8:],
    lambda rows: b"node,kind\na,b\n",
    lambda rows: b"\x1f\x8b" + _file(rows),
    lambda rows: _file(pa.table({"a": [1]})),
    lambda rows: _file(pa.table({})),
    lambda rows: _file(segment(GAPS, [ROWS[GAPS]])),
    lambda rows: _file(rows.append_column("kind", rows["kind"])),
    lambda rows: _file(rows.drop_columns(["tries"])),
    lambda rows: _file(_changed(rows, "tries", pa.array(["1"] * 3))),
    lambda rows: _file(_changed(rows, "tries", pa.array([1 << 40] * 3))),
    lambda rows: _file(_changed(rows, "keys", pa.array([{"a": "k"}] * 3))),
    lambda rows: _file(_changed(rows, "started", pa.array([1.5] * 3))),
    lambda rows: _file(
        _changed(rows, "node", pa.array([b"\xff"] * 3, pa.binary()).cast(pa.string(), safe=False))
    ),
    lambda rows: _file(rows.replace_schema_metadata({VERSION_KEY: b"\xff"})),
)


def _flipped(content: bytes, draw: _Draw) -> bytes:
    """The file with some other bytes. Which rows it still gives, nobody knows."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        changed[draw.randrange(len(changed))] = draw.choice((draw.randrange(256), 0, 0x7F, 0xFF))
    return bytes(changed)
