"""Groups of rows, and the sums and quantiles of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]


class Groups:
    """The groups of rows that are equal in some columns. These columns have no nulls."""

    def __init__(self, rows: pa.Table, by: Sequence[str]) -> None:
        number = np.zeros(rows.num_rows, np.int64)
        distinct = np.zeros(0, np.int64)
        for name in by:
            column = rows[name].combine_chunks().dictionary_encode()
            code = number * len(column.dictionary) + column.indices.to_numpy()
            distinct = np.unique(code)
            number = np.searchsorted(distinct, code)
        # The number of the group of each row, from 0.
        self.number: Integers = number
        # The position of one row of each group, whichever it is.
        examples = np.empty(len(distinct), np.int64)
        examples[number] = np.arange(rows.num_rows)
        # One row for each group, with the columns in which its rows are equal.
        self.rows = rows.select(by).take(pa.array(examples))

    def __repr__(self) -> str:
        return f"<Groups: {len(self)} by {', '.join(self.rows.column_names)}>"

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def sum(self, amounts: Integers) -> Integers:
        """The sum of each group, exact below 2**53."""
        return np.bincount(self.number, amounts, len(self)).astype(np.int64)

    def highest(self, amounts: Integers) -> Integers:
        """The highest amount of each group."""
        highest = np.full(len(self), np.iinfo(np.int64).min)
        np.maximum.at(highest, self.number, amounts)
        return highest

    def quantiles(
        self, amounts: Integers, counts: Integers, named: Mapping[str, float]
    ) -> Mapping[str, pa.Array]:
        """The quantiles of each group, for each named probability. Each amount occurs `counts` times.

        Interpolates between neighbouring amounts. Null in a group without amounts.
        """
        order = np.lexsort((amounts, self.number))
        ascending, up_to_here = amounts[order], np.cumsum(counts[order])
        total = self.sum(counts)
        before = np.cumsum(total) - total
        # A group without amounts gets the position 0. The mask below makes its quantiles null.
        last = np.maximum(total - 1, 0)

        def at(position: Integers) -> Integers:
            row = np.searchsorted(up_to_here, before + position, side="right")
            return ascending[np.minimum(row, len(ascending) - 1)]

        quantiles = {}
        for name, probability in named.items():
            position = probability * last
            below = np.floor(position).astype(np.int64)
            lower, upper = at(below), at(np.ceil(position).astype(np.int64))
            quantiles[name] = pa.array(lower + (upper - lower) * (position - below), mask=total == 0)
        return quantiles
