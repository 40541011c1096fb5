"""The tables that `summarize`, `advise` and `replay` make, and their columns.

Some commands read the rows of a table as objects. The columns of such a table are the fields of their class.
The docstrings of the functions that make the rows explain the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, get_args, get_type_hints

import pyarrow as pa

from purgatory.observer import OUTCOMES
from purgatory.pipeline.advise.evidence import Effect, Reading
from purgatory.pipeline.advise.verdict import Verdict
from purgatory.pipeline.replay.recommendation import ReplayedSetting


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A table that a command makes from the compacted tables. Each run replaces it."""

    # The directory of the command's tables in the dataset.
    folder: str
    name: str
    columns: pa.Schema
    # The order of the rows. If the table has an order, all rows are in one file.
    order_by: tuple[str, ...]


_TEXT: Final = pa.string()
_COUNT: Final = pa.int64()
_MICROSECONDS: Final = pa.int64()
_REAL: Final = pa.float64()
_FLAG: Final = pa.bool_()
_INSTANT: Final = pa.timestamp("us", "UTC")
# The type of a column, by the type of a field. The field may also be None.
_OF_FIELDS: Final = {str: _TEXT, int: pa.int64(), float: _REAL, bool: _FLAG, datetime: _INSTANT}


def _columns(**types: pa.DataType) -> pa.Schema:
    return pa.schema(types.items())


def _fields(row: type) -> dict[str, pa.DataType]:
    """The fields of a class as columns."""
    return {name: _OF_FIELDS[(get_args(hint) or (hint,))[0]] for name, hint in get_type_hints(row).items()}


# The columns that tables by minute have; see summarize.coverage and gaps.
_COVERED: Final = {"since": _INSTANT, "until": _INSTANT, "partial": _FLAG, "incomplete": _FLAG}

# The tables of `summarize`; see summarize.gaps, minutes, pending, hottest_keys and fan_out.
GAP_MINUTES: Final = DerivedTable(
    "summary",
    "gaps",
    _columns(
        minute=_INSTANT,
        nodes=pa.list_(pa.field("element", _TEXT, nullable=False)),
        lost_operations=_COUNT,
        lost_checks=_COUNT,
    ),
    order_by=("minute",),
)
MINUTES: Final = DerivedTable(
    "summary",
    "minutes",
    _columns(
        minute=_INSTANT,
        purgatory=_TEXT,
        kind=_TEXT,
        operations=_COUNT,
        **dict.fromkeys(OUTCOMES, _COUNT),
        wait_p50_us=_REAL,
        wait_p90_us=_REAL,
        wait_p99_us=_REAL,
        wait_p999_us=_REAL,
        lateness_p99_us=_REAL,
        tries_per_operation=_REAL,
        **_COVERED,
    ),
    order_by=("minute", "purgatory", "kind"),
)
PENDING: Final = DerivedTable(
    "summary",
    "pending",
    _columns(
        minute=_INSTANT,
        purgatory=_TEXT,
        kind=_TEXT,
        pending_max=_COUNT,
        pending_mean=_REAL,
        pending_last=_COUNT,
        **_COVERED,
    ),
    order_by=("minute", "purgatory", "kind"),
)
HOTTEST_KEYS: Final = DerivedTable(
    "summary",
    "hottest_keys",
    _columns(
        purgatory=_TEXT,
        by=_TEXT,
        rank=pa.int32(),
        key=_TEXT,
        operations=_COUNT,
        waited_us=_MICROSECONDS,
        wasted_tries=_COUNT,
    ),
    order_by=("purgatory", "by", "rank"),
)
FAN_OUT: Final = DerivedTable(
    "summary",
    "fan_out",
    _columns(
        minute=_INSTANT,
        purgatory=_TEXT,
        checks=_COUNT,
        tried=_COUNT,
        completed=_COUNT,
        tried_p50=_REAL,
        tried_p99=_REAL,
        tried_max=pa.int32(),
        **_COVERED,
    ),
    order_by=("minute", "purgatory"),
)
SUMMARY_TABLES: Final = (GAP_MINUTES, MINUTES, PENDING, HOTTEST_KEYS, FAN_OUT)

# The tables of `advise`; see advise.survival, effects and verdict. A kind comes before its keys, because null
# sorts first.
_STRATUM: Final = {"purgatory": _TEXT, "kind": _TEXT, "key": _TEXT}
# A curve has a row for each distinct wait, too many for one file.
CURVES: Final = DerivedTable(
    "advice",
    "curves",
    _columns(
        **_STRATUM,
        waited_us=_MICROSECONDS,
        at_risk=_COUNT,
        ended=_COUNT,
        completed=_COUNT,
        expired=_COUNT,
        completed_running=_COUNT,
        survival=_REAL,
        log_variance=_REAL,
        survival_low=_REAL,
        survival_high=_REAL,
        mean_wait_us=_REAL,
    ),
    order_by=(),
)
TIMEOUTS: Final = DerivedTable(
    "advice", "timeouts", _columns(**_fields(Reading)), order_by=("purgatory", "kind", "key", "share")
)
EFFECTS: Final = DerivedTable(
    "advice",
    "effects",
    _columns(**_STRATUM, timeout_us=_MICROSECONDS, **_fields(Effect)),
    order_by=("purgatory", "kind", "key", "timeout_us"),
)
VERDICTS: Final = DerivedTable(
    "advice", "verdicts", _columns(**_fields(Verdict)), order_by=("purgatory", "kind", "key")
)
ADVICE_TABLES: Final = (CURVES, TIMEOUTS, EFFECTS, VERDICTS)

# The tables of `replay`; see replay.settings and recommendation.
SETTINGS: Final = DerivedTable(
    "replay",
    "settings",
    _columns(**_fields(ReplayedSetting)),
    order_by=("purgatory", "tick_us", "wheel_size"),
)
RECOMMENDATIONS: Final = DerivedTable(
    "replay",
    "recommendations",
    _columns(
        purgatory=_TEXT,
        tick_us=_MICROSECONDS,
        wheel_size=_COUNT,
        acceptable_us=_MICROSECONDS,
        operations=_COUNT,
        recorded=_COUNT,
        sentence=_TEXT,
    ),
    order_by=("purgatory",),
)
REPLAY_TABLES: Final = (SETTINGS, RECOMMENDATIONS)

DERIVED_TABLES: Final = (*SUMMARY_TABLES, *ADVICE_TABLES, *REPLAY_TABLES)
