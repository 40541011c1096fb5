"""Replays recorded waits with other ticks and wheel sizes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Final

import pyarrow as pa

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.exchange import Part, columns
from purgatory.pipeline.replay.reaper import ReplayInterval, Setting
from purgatory.pipeline.replay.wheel_waits import OFF_THE_WHEEL, READS, WAITS, WHEEL
from purgatory.pipeline.sql import select

WORK: Final = pa.schema(
    [
        ("purgatory", pa.string()),
        *((name, pa.int64()) for name in ("tick_us", "wheel_size", "since_us", "until_us")),
        *((name, pa.int64()) for name in ("operations", "wakeups", "moves", "fullest_slot", "levels")),
        # A lateness, and the number of operations that expired this late. Rows with a lateness have nothing
        # else. All else is in one more row for each interval and setting.
        *((name, pa.int64()) for name in ("lateness_us", "expired")),
    ]
)

_OVERLAPPING: Final = f"""
SELECT waits.*, since_us, until_us
FROM ({WAITS}) AS waits JOIN intervals USING (node, purgatory)
WHERE entered_us < until_us AND {OFF_THE_WHEEL} > since_us
"""
_BY_INTERVAL: Final = """
SELECT purgatory, since_us, until_us,
    list(entered_us) AS entered_us, list(deadline_us) AS deadline_us, list(left_us) AS left_us
FROM rows GROUP BY node, purgatory, since_us, until_us
"""
_BY_SETTING: Final = """
WITH counted AS (
    SELECT
        *,
        sum(expired) OVER (PARTITION BY purgatory, tick_us, wheel_size ORDER BY lateness_us) AS upto,
        sum(expired) OVER (PARTITION BY purgatory, tick_us, wheel_size) AS number
    FROM rows
),
measured AS (
    SELECT
        purgatory, tick_us, wheel_size,
        instant(min(since_us)) AS since, instant(max(until_us)) AS until,
        total(operations) AS operations, total(wakeups) AS wakeups, total(moves) AS moves,
        max(fullest_slot) AS fullest_slot, max(levels) AS levels, total(expired) AS expired,
        sum(lateness_us * expired) / nullif(sum(expired), 0) AS lateness_mean_us,
        quantile(lateness_us, upto, number, 0.99) AS lateness_p99_us,
        max(lateness_us) AS lateness_max_us
    FROM counted GROUP BY purgatory, tick_us, wheel_size
),
compared AS (
    SELECT *, wakeups + moves AS work, coalesce(lateness_p99_us, tick_us) AS late FROM measured
)
SELECT
    * EXCLUDE (work, late),
    coalesce(work < min(work) OVER (
        PARTITION BY purgatory ORDER BY late, work, wheel_size, tick_us
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), true) AS pareto
FROM compared
"""


def replayed(settings: Sequence[Setting], intervals: pa.Table) -> Part:
    """Replay each of the `intervals` on a timing wheel, with each of the settings.

    Gives several rows for each setting, which `by_setting` adds up. Runs in Python, at some microseconds for
    each wait and setting. One task processes an interval.
    """
    coarsest_us = max(setting.tick_us for setting in settings)
    return Part(
        "replayed",
        OPERATIONS,
        columns(OPERATIONS, *READS),
        partial(select, _OVERLAPPING.format(coarsest_us=coarsest_us), intervals=intervals),
        group=(*WHEEL, "since_us"),
        merge=partial(replay, settings),
    )


def replay(settings: Sequence[Setting], waits: pa.Table) -> pa.Table:
    """The part of `replayed` that runs in the workers, with the waits of some intervals."""
    rows: list[tuple[object, ...]] = []
    lateness: defaultdict[tuple[str, int, int], Counter[int]] = defaultdict(Counter)
    for each in select(_BY_INTERVAL, waits).to_pylist():
        times = zip(each["entered_us"], each["deadline_us"], each["left_us"], strict=True)
        interval = ReplayInterval(list(times), each["since_us"], each["until_us"])
        for setting in settings:
            work = interval.replayed(setting)
            of = (each["purgatory"], setting.tick_us, setting.wheel_size)
            done = (interval.begun, work.wakeups, work.moves, work.fullest_slot, work.levels)
            rows.append((*of, each["since_us"], interval.end, *done, None, 0))
            lateness[of].update(work.lateness)
    for of, late in lateness.items():
        rows += ((*of, None, None, 0, 0, 0, 0, 0, *counted) for counted in late.items())
    columns = zip(*rows, strict=True) if rows else [()] * len(WORK)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, WORK, strict=True)]
    return pa.Table.from_arrays(arrays, schema=WORK)


def by_setting(replayed: pa.Table) -> pa.Table:
    """One row for each purgatory, ``tick_us`` and ``wheel_size``. Adds up all nodes and intervals.

    ``since``, ``until``
        the time that was replayed
    ``operations``
        the number of operations that were added to the wheel in that time
    ``wakeups``
        the wake-ups of the reaper
    ``moves``
        how often an operation moved from a slot of a higher level to one of a lower level
    ``fullest_slot``
        the most operations that a slot held at a time
    ``levels``
        the levels of the wheel
    ``expired``
        the operations whose timeout expired
    ``lateness_mean_us``, ``lateness_p99_us``, ``lateness_max_us``
        the lateness of these operations, which comes from rounding deadlines up to a tick; null if none
        expired
    ``pareto``
        whether no other setting is better. A setting is better if it has no more work (wake-ups and moves)
        and no more lateness (p99, or one tick if none expired), and less work or less lateness. If settings
        are equal, the setting with the smallest wheel is in the set.
    """
    return select(_BY_SETTING, replayed)
