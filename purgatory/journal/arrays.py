"""Arrow arrays from Python values: text that is always UTF-8, and times in whole microseconds.

The writer's thread makes these arrays. While this thread runs Python code, the event loop waits for the
interpreter. So Arrow does the work where possible.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Hashable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from purgatory.errors import safe_text

INSTANT: Final = pa.timestamp("us", tz="UTC")
TEXTS: Final = pa.list_(pa.field("element", pa.string(), nullable=False))

# In seconds; about 279,000 years. A longer timeout does not fit the column, and becomes null.
_LONGEST: Final = float(1 << 43)


def texts(values: list[Hashable]) -> pa.Array:
    """An array of strings, one for each value; see `safe_text`."""
    try:
        return pa.array([str(value) for value in values], pa.string())
    except (Exception, CancelledError):
        # str() runs the user's code, which may raise or return text that is not UTF-8.
        return pa.array([safe_text(value) for value in values], pa.string())


def text_lists(lists: list[tuple[Hashable, ...]]) -> pa.Array:
    """An array of lists of strings, without duplicates within a list."""
    offsets, values = [0], list[Hashable]()
    for each in lists:
        # An operation that never waited may name a key twice.
        values += each if len(each) == 1 else dict.fromkeys(each)
        offsets.append(len(values))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts(values), type=TEXTS)


def seconds(values: list[float]) -> pa.Array:
    return pa.array(values, pa.float64())


def microseconds(seconds: pa.Array, where: pa.Array | None = None) -> pa.Array:
    """Seconds as whole microseconds. The result is null where the mask `where` is false."""
    if where is not None:
        seconds = pc.if_else(where, seconds, None)
    return pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64())


def timeouts(seconds: pa.Array) -> pa.Array:
    """Timeouts in whole microseconds.

    A timeout that never expires becomes null. A negative timeout means the same as 0, and becomes 0.
    """
    return microseconds(pc.max_element_wise(seconds, 0.0), where=pc.less(seconds, _LONGEST))


def instants(loop_times: pa.Array, epoch: float) -> pa.Array:
    """UTC timestamps. The loop's time 0 is at `epoch`, in seconds since 1970."""
    return microseconds(pc.add(loop_times, epoch)).cast(INSTANT)
