"""The command `replay`: replays recorded operations on timing wheels with other ticks and sizes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from purgatory.journal.schema import GAPS, GAPS_SCHEMA
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.exchange import gather, map_files
from purgatory.pipeline.replay.reaper import NEVER, Setting
from purgatory.pipeline.replay.recommendation import DEFAULT, ReplayedSetting, recommend
from purgatory.pipeline.replay.settings import by_setting, replayed
from purgatory.pipeline.replay.wheel_waits import NO_WAITS, intervals
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.sql import select
from purgatory.pipeline.tables import RECOMMENDATIONS, REPLAY_TABLES, SETTINGS
from purgatory.pipeline.text import counted, duration


def check(options: Namespace) -> None:
    Dataset(options.dataset).check_compacted()


def run(spark: Spark, options: Namespace) -> None:
    dataset = Dataset(options.dataset)
    settings = _settings(options)
    coarsest_us = max(setting.tick_us for setting in settings)
    partition = intervals(coarsest_us=coarsest_us, newest=options.operations or NEVER)
    files = dataset.files()
    found = gather(spark, files, [partition])["intervals"]
    recorded = _recorded(found)
    if not recorded:
        dataset.clear(REPLAY_TABLES)
        print(NO_WAITS)
        return
    this_run = dataset.new_run(REPLAY_TABLES)
    work = gather(spark, files, [replayed(settings, found)])["replayed"]
    dataset.replace(SETTINGS, by_setting(work), this_run)

    rows = [ReplayedSetting(**row) for row in dataset.derived(SETTINGS).rows().to_pylist()]
    by_purgatory = [list(group) for _, group in groupby(rows, key=lambda row: row.purgatory)]
    recommendations = [recommend(group, round(options.late * 1e6)) for group in by_purgatory]
    sentences = [
        {
            "purgatory": each.chosen.purgatory,
            "tick_us": each.chosen.tick_us,
            "wheel_size": each.chosen.wheel_size,
            "acceptable_us": each.acceptable_us,
            "operations": each.chosen.operations,
            "recorded": recorded[each.chosen.purgatory],
            "sentence": each.sentence(),
        }
        for each in recommendations
    ]
    dataset.replace(RECOMMENDATIONS, pa.Table.from_pylist(sentences, RECOMMENDATIONS.columns), this_run)

    for each in recommendations:
        print(_replayed(each.default, recorded[each.default.purgatory]))
    print()
    for line in _table([row for row in rows if row.pareto or row.is_default]):
        print(line)
    for each in recommendations:
        print(f"\n{each.sentence()}")
    since = min(row.since for row in rows)
    lost = _lost(spark, files[GAPS], since)
    if lost:
        print(
            f"\nThe journal lacks up to {counted(lost, 'operation')} of that time, so the replay lacks "
            "them, too."
        )


def _recorded(intervals: pa.Table) -> Mapping[str, int]:
    """The number of all waits of each purgatory."""
    query = """
    SELECT purgatory, total(recorded) AS recorded
    FROM (SELECT DISTINCT node, purgatory, recorded FROM rows) GROUP BY purgatory
    """
    return {row["purgatory"]: row["recorded"] for row in select(query, intervals).to_pylist()}


def _lost(spark: Spark, paths: Sequence[str], since: datetime) -> int:
    """The number of operations that were lost in gaps that ended at this time or later."""
    lost = map_files(
        spark,
        paths,
        GAPS_SCHEMA,
        partial(
            select,
            f"""
    SELECT total(lost_operations) AS lost FROM rows WHERE ended >= TIMESTAMPTZ '{since.isoformat()}'
    """,
        ),
    )
    return pc.sum(lost["lost"]).as_py() or 0


def _settings(options: Namespace) -> list[Setting]:
    """The requested settings, and the default."""
    requested = [
        Setting(round(tick * 1e6), wheel_size) for tick in options.ticks for wheel_size in options.wheel_sizes
    ]
    return list(dict.fromkeys([*requested, DEFAULT]))


def _replayed(row: ReplayedSetting, recorded: int) -> str:
    since, until = (f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S}" for instant in (row.since, row.until))
    return (
        f"{row.purgatory}: replayed the newest {row.operations:,} of "
        f"{counted(recorded, 'operation')} with a timeout, "
        f"from {since} to {until} UTC"
    )


def _table(rows: Sequence[ReplayedSetting]) -> Iterable[str]:
    """The Pareto set of settings, and the default."""
    lines = [["", "tick", "slots", "wake-ups", "moves", "fullest slot", "lateness p99", ""]]
    for row in rows:
        lines.append(
            [
                row.purgatory,
                row.tick,
                *(f"{each:,}" for each in (row.wheel_size, row.wakeups, row.moves, row.fullest_slot)),
                "-" if row.lateness_p99_us is None else duration(row.lateness_p99_us),
                "the default" if row.is_default else "",
            ]
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for stratum, *figures, remark in lines:
        columns = [stratum.ljust(widths[0]), *map(str.rjust, figures, widths[1:]), remark]
        yield "  ".join(columns).rstrip()
