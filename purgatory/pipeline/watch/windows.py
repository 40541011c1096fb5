"""The measures of `minutes` by windows of any length, of a journal that is still being written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from purgatory.pipeline.sql import select
from purgatory.pipeline.summarize.minutes import COUNTED, MEASURED
from purgatory.pipeline.watch.monitor import Window

_WINDOWS: Final = f"""
SELECT start_us AS start, start_us + {{length_us}} AS end, purgatory, kind, operations, expired,
    wait_p50_us, wait_p99_us, lateness_p99_us, tries_per_operation, latest_us AS latest
FROM ({MEASURED})
"""


class Windows:
    """The open windows. A window keeps a count for each combination of binned values, some thousand."""

    def __init__(self, length_us: int) -> None:
        self._length = length_us
        self._counted: pa.Table | None = None

    def __repr__(self) -> str:
        rows = 0 if self._counted is None else self._counted.num_rows
        return f"<Windows of {self._length / 1e6:g} s: {rows} counts>"

    @property
    def query(self) -> str:
        """The query that condenses operations to the rows that `add` takes."""
        return COUNTED.format(length_us=self._length)

    def add(self, counted: pa.Table) -> Sequence[Window]:
        """Count more operations. Returns the windows that have changed, as they are now."""
        known = [] if self._counted is None else [self._counted]
        self._counted = pa.concat_tables([*known, counted])
        changed = "SELECT * FROM rows SEMI JOIN changed USING (start_us, purgatory, kind)"
        rows = select(changed, self._counted, changed=counted)
        return [Window(**row) for row in select(_WINDOWS.format(length_us=self._length), rows).to_pylist()]

    def close(self, until_us: int) -> None:
        """Forget the windows that end at this instant, or before."""
        if self._counted is not None:
            open_rows = f"SELECT * FROM rows WHERE start_us + {self._length} > {until_us}"
            self._counted = select(open_rows, self._counted)
