"""The command `advise`, on a dataset as `compact` leaves it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from purgatory.journal.schema import EXPIRED
from purgatory.pipeline.advise.verdict import UNKNOWN
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs import advise
from purgatory.pipeline.schemas import OPERATIONS, OPERATIONS_TABLE
from purgatory.pipeline.tables import ADVICE_TABLES
from tests.pipeline.datasets import add_batch
from tests.pipeline.journals import operation


def compacted(spark: SparkSession, root: Path, waits: Sequence[tuple[str, int, str]]) -> Dataset:
    """A dataset with operations on these keys; waits are in milliseconds."""
    dataset = Dataset(str(root))
    rows = [
        operation(
            number,
            keys=[key],
            timeout_us=5_000,
            waited_us=1_000 * wait,
            lateness_us=0 if outcome == EXPIRED else None,
            outcome=outcome,
        )
        for number, (key, wait, outcome) in enumerate(waits)
    ]
    add_batch(dataset, OPERATIONS_TABLE, spark.createDataFrame(rows, OPERATIONS))
    return dataset


def advised(spark: SparkSession, dataset: Dataset) -> dict[str, list[Any]]:
    last = {"curves": "waited_us", "timeouts": "share", "effects": "timeout_us", "verdicts": "key"}
    return {
        name: frame.orderBy("purgatory", "kind", "key", last[name]).collect()
        for name, frame in dataset.read_run(spark, ADVICE_TABLES).items()
    }


@dataclass(frozen=True)
class Run:
    options: Namespace
    output: str
    tables: dict[str, list[Any]]


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    hot = [("hot", 1, "completed"), ("hot", 2, "completed"), ("hot", 5, "expired")]
    root = tmp_path_factory.mktemp("dataset")
    dataset = compacted(spark, root, [*hot, ("cold", 4, "completed")])
    parser = ArgumentParser()
    advise.add_arguments(parser)
    options = parser.parse_args([str(root), "--hot-keys", "1"])
    with redirect_stdout(StringIO()) as printed:
        advise.run(spark, options)
    return Run(options, printed.getvalue(), advised(spark, dataset))


def test_a_second_run_gives_the_same_tables_even_after_an_interruption(
    spark: SparkSession, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(advise, "with_stratum", interrupt)
        with pytest.raises(KeyboardInterrupt):
            advise.run(spark, run.options)
    # The curves are of another run than the timeouts.
    assert advised(spark, run.options.dataset) == {}

    advise.run(spark, run.options)
    assert advised(spark, run.options.dataset) == run.tables


def test_it_writes_and_prints_advice_for_kinds_and_hot_keys(run: Run) -> None:
    first = run.tables
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
    of_kind, of_key = run.tables["verdicts"]
    verdicts, timeouts = run.output.split("\n\n")
    title, *reason, alike = verdicts.splitlines()
    assert title == "Fetch in fetch: cannot be told yet"
    assert " ".join(line.strip() for line in reason) == of_kind.reason
    assert alike == "  1 key behaves as its kind does: hot."
    assert of_key.reason not in run.output
    header, kind, key = timeouts.splitlines()
    columns = "operations 50 % 90 % 95 % 99 % 99.9 %"
    assert header.split() == ["would", "complete", "by", *columns.split()]
    assert kind.startswith("Fetch in fetch                  4  2.00 ms  > 5.00 ms")
    assert key.startswith("Fetch in fetch on hot           3  2.00 ms  > 5.00 ms")


def test_keys_that_behave_differently_have_a_verdict_of_their_own(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = [("fast", 1, "completed")] * 500
    # A terminal would obey the name of the other key.
    dataset = compacted(spark, tmp_path, [*fast, *[("slow\x1b[2J", 5, "expired")] * 40])
    advise.run(spark, Namespace(dataset=dataset, hot_keys=2))

    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines if line.startswith("Fetch") and ": " in line] == [
        "Fetch in fetch",
        "Fetch in fetch on fast",
        "Fetch in fetch on slow\ufffd[2J",
    ]


def test_an_empty_dataset_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no operations are compacted here"):
        advise.run(spark, Namespace(dataset=compacted(spark, tmp_path, []), hot_keys=1))
