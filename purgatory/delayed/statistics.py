"""What a store of delayed messages has counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DelayedStatistics:
    """Counts since the store was opened, and gauges of now.

    `scheduled`, `delivered`, `cancelled` and `dead` count messages; `failures` counts deliveries that raised.
    `retrying` messages wait for another attempt. `waiting` messages are due and wait for a worker, the first
    one for `lag_seconds`. `log_bytes` and `slot_bytes` were written to the log and to the slot files.
    `failed` is 1 when the store has failed and delivers nothing more, else 0.
    """

    scheduled: int
    delivered: int
    cancelled: int
    failures: int
    dead: int
    retrying: int
    waiting: int
    lag_seconds: float
    log_bytes: int
    slot_bytes: int
    failed: int
