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
            waited_us=1_000 * wait,
            lateness_us=0 if outcome == EXPIRED else None,
            outcome=outcome,
        )
        for number, (key, wait, outcome) in enumerate(waits)
    ]
    add_batch(dataset, OPERATIONS_TABLE, spark.createDataFrame(rows, OPERATIONS))
    return dataset


def advised(spark: SparkSession, dataset: Dataset) -> dict[str, list[Any]]:
    last = {"curves": "waited_us", "timeouts": "share", "sentences": "share"}
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
    assert len(first["sentences"]) == len(first["timeouts"])
    lines = run.output.splitlines()
    assert lines[0].split() == ["operations", "50", "%", "90", "%", "95", "%", "99", "%", "99.9", "%"]
    assert lines[1].startswith("Fetch in fetch                  4  2.00 ms  > 5.00 ms")
    assert lines[2].startswith("Fetch in fetch on hot           3  2.00 ms  > 5.00 ms")
    printed = [row.sentence for row in first["sentences"] if row.share == 0.99]
    assert [line for line in lines[3:] if line] == printed
    assert "not identifiable beyond 5.00 ms" in printed[0]


def test_an_empty_dataset_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no operations are compacted here"):
        advise.run(spark, Namespace(dataset=compacted(spark, tmp_path, []), hot_keys=1))
