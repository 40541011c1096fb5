"""The replay of intervals, and the measures of each setting."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.replay.reaper import ReplayInterval, Setting
from purgatory.pipeline.replay.settings import WORK, by_setting, replay, replayed
from purgatory.pipeline.replay.wheel_waits import intervals
from tests.pipeline.journals import NOON, segment
from tests.pipeline.parts import result
from tests.pipeline.replay.random_waits import random_waits
from tests.pipeline.replay.wheels import waited

SETTINGS = [Setting(1_000, 8), Setting(10_000, 32), Setting(50_000, 3)]
# The seeds of the waits on each wheel. One purgatory is on two nodes.
SEEDS = {("a", "fetch"): 5, ("b", "fetch"): 9, ("a", "produce"): 0}


def test_the_rows_of_an_interval_add_up_to_its_work() -> None:
    waits = random_waits(5)
    since, until = waits[10][1], waits[-10][0]
    columns = dict(zip(("entered_us", "deadline_us", "left_us"), zip(*waits, strict=True), strict=True))
    table = pa.table(
        columns
        | {
            "node": ["n"] * len(waits),
            "purgatory": ["p"] * len(waits),
            "since_us": [since] * len(waits),
            "until_us": [until] * len(waits),
        }
    )

    rows = replay(SETTINGS, table).to_pylist()

    interval = ReplayInterval(waits, since, until)
    for setting in SETTINGS:
        own = [
            row
            for row in rows
            if (row["tick_us"], row["wheel_size"]) == (setting.tick_us, setting.wheel_size)
        ]
        work = interval.replayed(setting)
        total = {
            name: sum(row[name] for row in own) for name in ("operations", "wakeups", "moves", "expired")
        }
        assert total == {
            "operations": interval.begun,
            "wakeups": work.wakeups,
            "moves": work.moves,
            "expired": work.lateness.total(),
        }
        assert max(row["fullest_slot"] for row in own) == work.fullest_slot
        assert max(row["levels"] for row in own) == work.levels
        assert {row["purgatory"] for row in own} == {"p"}
        times = {(row["since_us"], row["until_us"]) for row in own if row["lateness_us"] is None}
        assert times == {(since, interval.end)}
        late = Counter({row["lateness_us"]: row["expired"] for row in own if row["lateness_us"] is not None})
        assert late == work.lateness


@pytest.mark.long
def test_the_measures_do_not_depend_on_the_partition_into_intervals() -> None:
    histories = {wheel: random_waits(seed, most=150) for wheel, seed in SEEDS.items()}
    rows = segment(OPERATIONS, [waited(wheel, wait) for wheel, waits in histories.items() for wait in waits])
    shuffled = rows.sort_by("waited_us")
    found = []
    for operations, size, chunk in ((rows, 1_000_000, 1_000), (shuffled, 1, 7)):
        partition = result(intervals(coarsest_us=50_000, size=size), operations, chunk=chunk)
        work = result(replayed(SETTINGS, partition), operations, chunk=chunk)
        found.append((Counter(partition["purgatory"].to_pylist()), by_setting(work)))
    (few, whole), (many, split) = found
    assert (few["fetch"], few["produce"]) == (2, 1)
    assert min(many["fetch"], many["produce"]) > 5
    order = [(name, "ascending") for name in ("purgatory", "tick_us", "wheel_size")]
    assert split.sort_by(order).to_pylist() == whole.sort_by(order).to_pylist()
    interval = ReplayInterval(histories["a", "produce"])
    produce = [row for row in whole.sort_by(order).to_pylist() if row["purgatory"] == "produce"]
    for row, setting in zip(produce, SETTINGS, strict=True):
        work = interval.replayed(setting)
        assert (row["operations"], row["wakeups"], row["moves"]) == (interval.begun, work.wakeups, work.moves)
        assert (row["fullest_slot"], row["levels"]) == (work.fullest_slot, work.levels)
        assert row["expired"] == work.lateness.total()


@pytest.fixture(scope="module")
def measures() -> dict[tuple[str, int, int], dict[str, Any]]:
    """By purgatory, tick and wheel size."""
    noon = round(NOON.timestamp() * 1e6)

    def row(purgatory: str, tick: int, size: int, wakeups: int, moves: int, **late: Any) -> tuple[Any, ...]:
        done = {
            "operations": 10,
            "fullest": 3,
            "levels": 2,
            "since": 0,
            "until": 9,
            "lateness": None,
            "expired": 0,
        }
        each = done | late
        times = (noon + each["since"], noon + each["until"])
        work = (each["operations"], wakeups, moves, each["fullest"], each["levels"])
        return (purgatory, tick, size, *times, *work, each["lateness"], each["expired"])

    none = {"operations": 0, "fullest": 0, "levels": 0}
    rows = [
        # Two intervals, the second one on another node.
        row("fetch", 1000, 8, 5, 2, until=40),
        row("fetch", 1000, 8, 6, 1, since=20, until=90, fullest=7, levels=3),
        row("fetch", 1000, 8, 0, 0, lateness=100, expired=3, **none),
        row("fetch", 1000, 8, 0, 0, lateness=900, expired=1, **none),
        row("fetch", 1000, 8, 0, 0, lateness=100, expired=4, **none),
        # Less work and later; as much work and later; less work than both.
        row("fetch", 2000, 8, 12, 0, lateness=1500, expired=1),
        row("fetch", 5000, 8, 0, 12, lateness=4000, expired=1),
        row("fetch", 9000, 8, 10, 0, lateness=8000, expired=1),
        # Still less work, and as late. The same with a larger wheel.
        row("fetch", 9000, 32, 3, 0, lateness=8000, expired=1),
        row("fetch", 9000, 64, 3, 0, lateness=8000, expired=1),
        # No operation expired, so the tick is the lateness.
        row("produce", 1000, 8, 1, 1),
        row("produce", 2000, 8, 1, 0),
        row("produce", 3000, 8, 1, 0),
    ]  # fmt: skip
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), WORK, strict=True)
    ]
    found = by_setting(pa.Table.from_arrays(columns, schema=WORK)).to_pylist()
    return {(row["purgatory"], row["tick_us"], row["wheel_size"]): row for row in found}


def test_intervals_and_nodes_are_added_up(measures: dict[tuple[str, int, int], dict[str, Any]]) -> None:
    assert measures["fetch", 1000, 8] == {
        "purgatory": "fetch",
        "tick_us": 1000,
        "wheel_size": 8,
        "since": NOON,
        "until": NOON + timedelta(microseconds=90),
        "operations": 20,
        "wakeups": 11,
        "moves": 3,
        "fullest_slot": 7,
        "levels": 3,
        "expired": 8,
        "lateness_mean_us": 200.0,
        "lateness_p99_us": pytest.approx(844),
        "lateness_max_us": 900,
        "pareto": True,
    }
    nothing_expired = measures["produce", 1000, 8]
    assert nothing_expired["expired"] == 0
    assert [nothing_expired[f"lateness_{each}_us"] for each in ("mean", "p99", "max")] == [None] * 3


def test_a_setting_that_is_worse_in_one_way_and_better_in_none_is_not_in_the_pareto_set(
    measures: dict[tuple[str, int, int], dict[str, Any]],
) -> None:
    assert {setting for setting, row in measures.items() if row["pareto"]} == {
        ("fetch", 1000, 8),
        ("fetch", 2000, 8),
        ("fetch", 9000, 32),
        ("produce", 1000, 8),
        ("produce", 2000, 8),
    }
