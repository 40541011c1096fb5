"""The command `advise`, on a dataset as `compact` leaves it."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import SimpleNamespace as Row
from typing import Any

import pytest

from purgatory.journal.schema import EXPIRED
from purgatory.pipeline.advise.verdict import UNKNOWN, UNLESS
from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs import advise
from purgatory.pipeline.schemas import OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.tables import ADVICE_TABLES
from tests.pipeline.datasets import add_batch, derive, rows_of_run
from tests.pipeline.journals import operation


def compacted(spark: Spark, root: Path, waits: Sequence[tuple[str, str, int, str]]) -> Dataset:
    """A dataset with operations of these purgatories, on these keys; waits are in milliseconds."""
    dataset = Dataset(str(root))
    rows = [
        operation(
            number,
            purgatory=purgatory,
            keys=[key],
            timeout_us=5_000,
            waited_us=1_000 * wait,
            lateness_us=0 if outcome == EXPIRED else None,
            outcome=outcome,
        )
        for number, (purgatory, key, wait, outcome) in enumerate(waits)
    ]
    add_batch(dataset, OPERATIONS_TABLE, rows)
    return dataset


def advised(spark: Spark, dataset: Dataset) -> dict[str, list[Any]]:
    last = {"curves": "waited_us", "timeouts": "share", "effects": "timeout_us", "verdicts": "key"}
    return {
        name: [
            Row(**row)
            for row in sorted(
                rows, key=lambda row: (row["purgatory"], row["kind"], row["key"] or "", row[last[name]] or "")
            )
        ]
        for name, rows in rows_of_run(dataset, ADVICE_TABLES).items()
    }


@dataclass(frozen=True)
class Run:
    output: str
    tables: dict[str, list[Any]]


@pytest.fixture(scope="module")
def run(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Run:
    hot = [("fetch", "hot", 1, "completed"), ("fetch", "hot", 2, "completed"), ("fetch", "hot", 5, "expired")]
    cold = ("fetch", "cold", 4, "completed")
    fast = [("produce", f"fast-{number}", 1, "completed") for number in range(500)]
    # A terminal would obey the name of this key.
    slow = [("produce", "slow\x1b[2J", 5, "expired")] * 40
    root = tmp_path_factory.mktemp("dataset")
    dataset = compacted(spark, root, [*hot, cold, *fast, *slow])
    # An earlier run has left these.
    for table in ADVICE_TABLES:
        derive(dataset, table, [], run=3)
    with redirect_stdout(StringIO()) as printed:
        advise.run(spark, parser().parse_args(["advise", dataset.root, "--hot-keys=1"]))
    return Run(printed.getvalue(), advised(spark, dataset))


def test_it_writes_and_prints_advice_for_kinds_and_hot_keys(run: Run) -> None:
    first = {name: [row for row in rows if row.purgatory == "fetch"] for name, rows in run.tables.items()}
    of_kind, of_key = (None, 4), ("hot", 3)
    assert [(row.key, row.operations, row.share) for row in first["timeouts"]] == [
        (key, number, share) for key, number in (of_kind, of_key) for share in advise.SHARES
    ]
    assert [row.timeout_us for row in first["timeouts"]] == [2_000, *[None] * 4, 2_000, *[None] * 4]
    assert [(row.key, row.waited_us) for row in first["curves"]] == [
        *((None, wait) for wait in (1_000, 2_000, 4_000, 5_000)),
        *(("hot", wait) for wait in (1_000, 2_000, 5_000)),
    ]
    # The timeout by which half completes, and the present one.
    assert [(row.key, row.timeout_us, row.more_completed) for row in first["effects"]] == [
        (key, *effect)
        for key, less in ((None, -1.0), ("hot", 0.0))
        for effect in ((2_000, less), (5_000, 0.0))
    ]
    assert [(row.key, row.verdict, row.present_us, row.as_kind) for row in first["verdicts"]] == [
        (None, UNKNOWN, 5_000, False),
        ("hot", UNKNOWN, 5_000, True),
    ]


def test_it_prints_the_verdicts_before_the_timeouts(run: Run) -> None:
    of_kind, of_key, *_ = run.tables["verdicts"]
    fetch, produce, unless, timeouts = run.output.split("\n\n")
    assert unless.replace("\n", " ") == UNLESS
    title, *reason, alike = fetch.splitlines()
    assert title == "Fetch in fetch: cannot be told yet"
    assert " ".join(line.strip() for line in reason) == of_kind.reason
    assert alike == "  1 key behaves as its kind does: hot."
    assert of_key.reason not in run.output
    # A key that behaves differently has a verdict of its own.
    titles = [line.partition(": ")[0] for line in produce.splitlines() if line[0] != " "]
    assert titles == ["Fetch in produce", "Fetch in produce on slow\ufffd[2J"]
    header, kind, key, *_ = timeouts.splitlines()
    columns = "operations 50 % 90 % 95 % 99 % 99.9 %"
    assert header.split() == ["would", "complete", "by", *columns.split()]
    for line, row in ((kind, ["Fetch in fetch", "4"]), (key, ["Fetch in fetch on hot", "3"])):
        assert re.split("  +", line)[:4] == [*row, "2.00 ms", "> 5.00 ms"]


def test_of_no_operations_it_has_nothing_to_say_and_makes_empty_tables(
    spark: Spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = compacted(spark, tmp_path, [])
    advise.run(spark, Namespace(dataset=dataset.root, hot_keys=1))
    assert capsys.readouterr().out == (
        f"No operation is compacted in {dataset.root} yet, so there is nothing to advise.\n"
    )
    assert rows_of_run(dataset, ADVICE_TABLES) == {table.name: [] for table in ADVICE_TABLES}
