"""Outcomes, waits, lateness and tries of the operations that ended in each minute."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatory.journal.schema import OPERATIONS
from purgatory.observer import OUTCOMES
from purgatory.pipeline.exchange import Part
from purgatory.pipeline.summarize.groups import Groups
from purgatory.pipeline.transforms.instants import MINUTE_US, ended_us
from purgatory.pipeline.transforms.quantiles import LATENESS, WAITS, bins

_GROUP: Final = ("minute_us", "purgatory", "kind")
# Operations that are equal in these columns are counted together.
_ALIKE: Final = [*_GROUP, "outcome", "waited_us", "lateness_us"]


def _counted(operations: pa.Table) -> pa.Table:
    """The numbers of operations that are alike, and the sums of their tries."""
    ended = ended_us(operations)
    late = operations["lateness_us"]
    binned = {
        "minute_us": pa.array(ended - ended % MINUTE_US),
        "waited_us": pa.array(bins(operations["waited_us"].to_numpy())),
        "lateness_us": pa.array(bins(pc.fill_null(late, 0).to_numpy()), mask=pc.is_null(late).to_numpy()),
    }
    others = {name: operations[name] for name in ("purgatory", "kind", "outcome", "tries")}
    counted = pa.table(binned | others).group_by(_ALIKE, use_threads=False)
    return counted.aggregate([([], "count_all"), ("tries", "sum")]).rename_columns(
        {"count_all": "operations", "tries_sum": "tries"}
    )


def _measured(counted: pa.Table) -> pa.Table:
    groups = Groups(counted, _GROUP)
    count, late = counted["operations"].to_numpy(), counted["lateness_us"]
    lateness, with_lateness = pc.fill_null(late, 0).to_numpy(), pc.is_valid(late).to_numpy()
    operations = groups.sum(count)
    outcomes = {each: pc.equal(counted["outcome"], each).to_numpy() for each in OUTCOMES}
    return pa.table(
        {
            "minute": groups.rows["minute_us"].cast(pa.timestamp("us", "UTC")),
            "purgatory": groups.rows["purgatory"],
            "kind": groups.rows["kind"],
            "operations": operations,
            **{outcome: groups.sum(count * those) for outcome, those in outcomes.items()},
            **groups.quantiles(counted["waited_us"].to_numpy(), count, WAITS),
            **groups.quantiles(lateness, count * with_lateness, LATENESS),
            "tries_per_operation": groups.sum(counted["tries"].to_numpy()) / np.maximum(operations, 1),
        }
    )


# There is one row for each minute, purgatory and kind in which an operation ended. ``operations`` is the
# number of operations, and ``completed``, … are their numbers by outcome. The quantiles are in microseconds,
# with the precision of `bins`: quantiles of the waits of all operations, and of the lateness of operations
# that have one.
MINUTES: Final = Part(
    "minutes",
    OPERATIONS,
    ("purgatory", "kind", "outcome", "started", "waited_us", "lateness_us", "tries"),
    _counted,
    group=_GROUP,
    merge=_measured,
)
