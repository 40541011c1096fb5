"""The fan-out of checks: how many operations a check of a key tries."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from purgatory.journal.schema import CHECKS
from purgatory.pipeline.exchange import Part
from purgatory.pipeline.summarize.groups import Groups
from purgatory.pipeline.transforms.instants import MINUTE_US
from purgatory.pipeline.transforms.quantiles import bins

_GROUP: Final = ("minute_us", "purgatory")
_QUANTILES: Final = {"tried_p50": 0.5, "tried_p99": 0.99}


def _counted(checks: pa.Table) -> pa.Table:
    """Count together the checks that tried about the same number of operations."""
    checked = checks["checked"].cast(pa.int64()).to_numpy()
    minute = pa.array(checked - checked % MINUTE_US)
    tried, completed = (checks[name].cast(pa.int64()).to_numpy() for name in ("tried", "completed"))
    alike = pa.table({"minute_us": minute, "purgatory": checks["purgatory"], "bin": pa.array(bins(tried))})
    groups = Groups(alike, alike.column_names)
    measures = {
        "checks": groups.sum(np.ones_like(tried)),
        "tried": groups.sum(tried),
        "completed": groups.sum(completed),
        "tried_max": groups.highest(tried),
        "first_us": -groups.highest(-checked),
        "last_us": groups.highest(checked),
    }
    return pa.table({**{name: groups.rows[name] for name in alike.column_names}, **measures})


def _measured(counted: pa.Table) -> pa.Table:
    groups = Groups(counted, _GROUP)
    checks, tried, completed, most, first, last, bin = (
        counted[name].to_numpy()
        for name in ("checks", "tried", "completed", "tried_max", "first_us", "last_us", "bin")
    )
    return pa.table(
        {
            "minute": groups.rows["minute_us"].cast(pa.timestamp("us", "UTC")),
            "purgatory": groups.rows["purgatory"],
            "checks": groups.sum(checks),
            "tried": groups.sum(tried),
            "completed": groups.sum(completed),
            **groups.quantiles(bin, checks, _QUANTILES),
            "tried_max": groups.highest(most),
            "first_us": -groups.highest(-first),
            "last_us": groups.highest(last),
        }
    )


# There is one row for each minute and purgatory in which a key was checked. ``checks`` is the number of
# checks. ``tried`` and ``completed`` are the numbers of operations that all checks together tried and
# completed. The quantiles are the numbers of operations that one check tried, with the precision of `bins`,
# and ``tried_max`` is the highest number. ``first_us`` and ``last_us`` are the instants of the first and the
# last check.
FAN_OUT: Final = Part(
    "fan_out",
    CHECKS,
    ("purgatory", "checked", "tried", "completed"),
    _counted,
    group=_GROUP,
    merge=_measured,
)
