"""Every constant of time, and how they depend on each other. `tests/delayed/test_schedule.py` checks that."""

from __future__ import annotations

from typing import Final

# Milliseconds, as in due times.

HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
# From 1970, before or after: 35,000 years. Up to there, seconds as a float keep each millisecond.
FARTHEST: Final = 1 << 50
# A slot after the slot of any due time.
END: Final = 1 << 63
# Between two turns. Each turn moves the log to the slot files, and the horizon on.
TURN: Final = 10_000
# A message that is due within this time is soon. Its slot is indexed a turn before it is read, at least.
SOON: Final = 2 * TURN
# If the wall clock was set back by no more than this while a store was closed, its log need not move.
SET_BACK: Final = 40_000
# A message is read this long before it is due.
AHEAD: Final = 1_000

# Seconds, as on the loop's clock.

# A thread that works for long makes pauses of this length. Otherwise it would keep the interpreter for 5 ms
# at a time (sys.getswitchinterval), and the event loop would wait for it at each turn.
PAUSE: Final = 1e-5
# The log says after this time that a message was delivered, if no call writes to the log before.
NOTE: Final = 0.01
# Between two reads, at least, when all that is due within `AHEAD` has been read.
BETWEEN_READS: Final = 0.02
# A step of the wall clock is noticed within this time, and matters from this size on.
LOOK: Final = 0.5
STEP: Final = 0.005
# Until a full disk is tried again.
FULL_DISK: Final = 1.0
# Until a message that cannot be read is read again, and until it is lost.
UNREADABLE: Final = 10.0
LOST: Final = 3_600.0
# Between two attempts to deliver a message, at most.
LONGEST_BACKOFF: Final = 60.0
# Closing waits this long for deliveries before a warning names them.
PATIENCE: Final = 1.0
# From the deadline of a durable operation until its message is due. The purgatory ends the operation before.
GRACE: Final = 1.0
# The deadline of a durable operation that was rescheduled to have none: a century.
NEVER: Final = 100 * 365.25 * 86_400


def slot_of(due: int, slot_ms: int) -> int:
    """The slot of a due time. All times before 1970 are in the first slot."""
    return due // slot_ms if due > 0 else 0


def horizon(now: int, slot_ms: int) -> int:
    """The first slot that is not soon. A message before it stays in the log until it is delivered."""
    return slot_of(now + SOON, slot_ms) + 1


def last_soon(now: int, slot_ms: int) -> int:
    """The latest due time that stays in the log until `now`, unless the wall clock was far ahead."""
    return horizon(now + SET_BACK, slot_ms) * slot_ms - 1
