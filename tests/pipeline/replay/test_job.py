"""The command `replay`, on a dataset as `compact` leaves it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from purgatory.journal.schema import GAPS
from purgatory.pipeline.commands import parser
from purgatory.pipeline.commands.replay import TICKS, WHEEL_SIZES
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs import replay
from purgatory.pipeline.replay.reaper import ReplayInterval, Setting
from purgatory.pipeline.replay.recommendation import DEFAULT
from purgatory.pipeline.replay.wheel_waits import NO_WAITS
from purgatory.pipeline.schemas import GAPS_TABLE, OPERATIONS_TABLE, Table
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.tables import REPLAY_TABLES
from tests.pipeline.datasets import add_batch, derive, rows_of_run
from tests.pipeline.journals import NOON, ROWS, Row, operation


def compacted(spark: Spark, root: Path, rows: dict[Table, Sequence[Row]]) -> Dataset:
    dataset = Dataset(str(root))
    for table, own in rows.items():
        add_batch(dataset, table, own)
    return dataset


def parsed(*arguments: str) -> Namespace:
    return parser().parse_args(["replay", *arguments])


@dataclass(frozen=True)
class Run:
    output: list[str]
    settings: list[Row]
    recommendations: list[Row]


# Five hundred operations a second for three seconds. Every second one expires, after 300 ms.
_STARTS = [2_000 * number + 7 for number in range(1500)]
_ROWS = [
    operation(
        number,
        started=NOON + timedelta(microseconds=start),
        timeout_us=300_000,
        **(
            {"waited_us": 300_500, "lateness_us": 500}
            if number % 2 == 0
            else {"waited_us": 40_000, "lateness_us": None, "outcome": "completed"}
        ),
    )
    for number, start in enumerate(_STARTS)
]


@pytest.fixture(scope="module")
def run(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("dataset")
    endless = operation(9000, purgatory="endless", timeout_us=None, outcome="completed", lateness_us=None)
    gap = ROWS[GAPS] | {"began": NOON, "ended": NOON + timedelta(seconds=2), "lost_operations": 7}
    dataset = compacted(spark, root, {OPERATIONS_TABLE: [*_ROWS, endless], GAPS_TABLE: [gap]})
    # An earlier run has left these.
    for table in REPLAY_TABLES:
        derive(dataset, table, [], run=3)
    options = parsed(
        str(root), "--ticks", "0.001", "0.01", "--wheel-sizes", "512", "--late", "0.01", "--operations", "700"
    )
    with redirect_stdout(StringIO()) as printed:
        replay.run(spark, options)
    tables = (
        sorted(rows, key=lambda row: (row["purgatory"], row["tick_us"], row["wheel_size"]))
        for rows in rows_of_run(dataset, REPLAY_TABLES).values()
    )
    return Run(printed.getvalue().splitlines(), *tables)


def test_each_setting_and_the_default_are_replayed(run: Run) -> None:
    # The last two seconds have 1000 operations; the last one has too few.
    waits = [
        (start, start + 300_000, None if number % 2 == 0 else start + 40_000)
        for number, start in enumerate(_STARTS)
        if start > 500_000
    ]
    interval = ReplayInterval(waits, since=1_000_000)
    assert [(row["purgatory"], row["tick_us"], row["wheel_size"]) for row in run.settings] == [
        ("fetch", 1_000, 60),
        ("fetch", 1_000, 512),
        ("fetch", 10_000, 512),
    ]
    for row in run.settings:
        work = interval.replayed(Setting(row["tick_us"], row["wheel_size"]))
        assert (row["operations"], row["expired"]) == (interval.begun, work.lateness.total())
        assert row["lateness_p99_us"] == pytest.approx(row["tick_us"] - 7)
        assert row["wakeups"] == work.wakeups


def test_the_recommendation_is_written_and_printed(run: Run) -> None:
    (row,) = run.recommendations
    assert (row["purgatory"], row["tick_us"], row["wheel_size"]) == ("fetch", 10_000, 512)
    assert (row["acceptable_us"], row["operations"], row["recorded"]) == (10_000, 1_000, 1_500)
    assert run.output[0] == (
        "fetch: replayed the newest 1,000 of 1,500 operations with a timeout, "
        "from 2026-03-01 12:00:01 to 2026-03-01 12:00:03 UTC"
    )
    assert run.output[2].split() == [
        "tick",
        "slots",
        "wake-ups",
        "moves",
        "fullest",
        "slot",
        "lateness",
        "p99",
    ]
    assert [line.split()[:4] for line in run.output[3:6]] == [
        ["fetch", "1", "ms", "60"],
        ["fetch", "1", "ms", "512"],
        ["fetch", "10", "ms", "512"],
    ]
    assert run.output[3].endswith("the default")
    assert run.output[7] == row["sentence"]
    assert run.output[-1] == (
        "The journal lacks up to 7 operations of that time, so the replay lacks them, too."
    )


def test_of_operations_that_have_not_waited_it_has_nothing_to_say_and_makes_empty_tables(
    spark: Spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tried_once = operation(1, outcome="completed", waited_us=10, lateness_us=None)
    dataset = compacted(spark, tmp_path, {OPERATIONS_TABLE: [tried_once], GAPS_TABLE: []})
    replay.run(spark, parsed(dataset.root))
    assert capsys.readouterr().out == f"{NO_WAITS}\n"
    assert rows_of_run(dataset, REPLAY_TABLES) == {table.name: [] for table in REPLAY_TABLES}


def test_of_a_journal_without_gaps_it_says_nothing_of_lost_operations(
    spark: Spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = compacted(spark, tmp_path, {OPERATIONS_TABLE: _ROWS[-1000:], GAPS_TABLE: []})
    replay.run(spark, parsed(dataset.root, "--ticks", "0.01", "--wheel-sizes", "60"))
    (row,) = rows_of_run(dataset, REPLAY_TABLES)["recommendations"]
    assert capsys.readouterr().out.endswith(f"\n{row['sentence']}\n")


def test_by_default_all_ticks_and_sizes_are_tried() -> None:
    options = parsed("dataset")
    assert (options.ticks, options.wheel_sizes) == (TICKS, WHEEL_SIZES)
    assert Setting(round(1e6 * options.ticks[0]), options.wheel_sizes[2]) == DEFAULT
