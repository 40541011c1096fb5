"""The command `replay`: replays recorded operations on timing wheels with other ticks and sizes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from datetime import UTC
from itertools import groupby
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.arguments import add_dataset, number, whole_number
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.replay.reaper import Setting
from purgatory.pipeline.replay.recommendation import DEFAULT, ReplayedSetting, recommend
from purgatory.pipeline.replay.settings import by_setting, replayed
from purgatory.pipeline.replay.wheel_waits import NO_WAITS, READS, intervals, wheel_waits
from purgatory.pipeline.sizing import fit
from purgatory.pipeline.tables import RECOMMENDATIONS, REPLAY_TABLES, SETTINGS
from purgatory.pipeline.text import duration

NAME: Final = "replay"
SUMMARY: Final = "Replay recorded operations with other ticks and wheel sizes, and recommend a setting."
EXAMPLES: Final = """\
  %(prog)s build/dataset
      replays the newest 100,000 operations of each purgatory, with 42 settings
  %(prog)s build/dataset --operations 0 --ticks 0.001 0.005 --wheel-sizes 60 512 --late 0.002
      replays all operations, with four settings; expirations may be 2 ms late
"""

TICKS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
# The wheel size of Kafka is 20.
WHEEL_SIZES: Final = (8, 20, 60, 128, 256, 2048)


def add_arguments(parser: ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--ticks",
        type=number(1e-6, 3600),
        nargs="+",
        default=TICKS,
        metavar="SECONDS",
        help=f"the ticks to try (default: {' '.join(f'{tick:g}' for tick in TICKS)})",
    )
    parser.add_argument(
        "--wheel-sizes",
        type=whole_number(2, 1 << 20),
        nargs="+",
        default=WHEEL_SIZES,
        metavar="SLOTS",
        help=f"the wheel sizes to try with each tick; the default setting is always tried "
        f"(default: {' '.join(map(str, WHEEL_SIZES))})",
    )
    parser.add_argument(
        "--late",
        type=number(0, 3600),
        default=0.01,
        metavar="SECONDS",
        help="the lateness that is acceptable for 99 %% of the expirations (default: %(default)s)",
    )
    parser.add_argument(
        "--operations",
        type=whole_number(0),
        default=100_000,
        metavar="N",
        help="replay the newest N operations of each node and purgatory, and other operations that start in "
        "the same seconds; 0 replays all operations (default: %(default)s)",
    )


def check(options: Namespace) -> None:
    dataset: Dataset = options.dataset
    dataset.check_compacted()


def run(spark: SparkSession, options: Namespace) -> None:
    dataset: Dataset = options.dataset
    fit(spark, dataset.size)
    waits = wheel_waits(dataset.read_operations(spark, READS))
    recorded = {row["purgatory"]: row["count"] for row in waits.groupBy("purgatory").count().collect()}
    if not recorded:
        dataset.clear(REPLAY_TABLES)
        print(NO_WAITS)
        return
    settings = _settings(options)
    partition = intervals(
        waits,
        coarsest_us=max(setting.tick_us for setting in settings),
        newest=options.operations or None,
    )
    this_run = dataset.new_run(REPLAY_TABLES)
    dataset.replace(SETTINGS, by_setting(replayed(waits, partition, settings)), this_run)

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
    dataset.replace_rows(RECOMMENDATIONS, sentences, this_run)

    for each in recommendations:
        print(_replayed(each.default, recorded[each.default.purgatory]))
    print()
    for line in _table([row for row in rows if row.pareto or row.is_default]):
        print(line)
    for each in recommendations:
        print(f"\n{each.sentence()}")
    since = min(row.since for row in rows)
    lost = dataset.read_gaps(spark).where(F.col("ended") >= since).agg(F.sum("lost_operations").alias("lost"))
    for row in lost.where("lost > 0").collect():
        print(
            f"\nUp to {row['lost']:,} operations of that time are missing in the journal, and in the replay."
        )


def _settings(options: Namespace) -> list[Setting]:
    """The requested settings, and the default."""
    requested = [
        Setting(round(tick * 1e6), wheel_size) for tick in options.ticks for wheel_size in options.wheel_sizes
    ]
    return list(dict.fromkeys([*requested, DEFAULT]))


def _replayed(row: ReplayedSetting, recorded: int) -> str:
    since, until = (f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S}" for instant in (row.since, row.until))
    return (
        f"{row.purgatory}: replayed the newest {row.operations:,} of {recorded:,} operations with a timeout, "
        f"from {since} to {until} UTC"
    )


def _table(rows: Sequence[ReplayedSetting]) -> Iterable[str]:
    """The Pareto set of settings, and the default."""
    lines = [["", "tick", "slots", "wake-ups", "moves", "fullest slot", "lateness p99", ""]]
    for row in rows:
        lines.append(
            [
                row.purgatory,
                f"{row.tick_us / 1000:g} ms",
                *(f"{each:,}" for each in (row.wheel_size, row.wakeups, row.moves, row.fullest_slot)),
                "-" if row.lateness_p99_us is None else duration(row.lateness_p99_us),
                "the default" if row.is_default else "",
            ]
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for stratum, *figures, remark in lines:
        columns = [stratum.ljust(widths[0]), *map(str.rjust, figures, widths[1:]), remark]
        yield "  ".join(columns).rstrip()
