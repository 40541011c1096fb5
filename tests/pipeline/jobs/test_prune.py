"""The command `prune`: it deletes what the dataset has, and nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.command import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs import prune
from purgatory.pipeline.jobs.compact import compact
from purgatory.pipeline.schemas import OPERATIONS_TABLE
from purgatory.pipeline.tally import Counts
from tests.pipeline.journals import add_segment, operation
from tests.pipeline.settings import NO_SPARK


def run(*arguments: str) -> None:
    """Run the command, which needs no Spark."""
    options = parser().parse_args(["prune", *arguments])
    prune.check(options)
    prune.run(NO_SPARK, options)


def test_old_segments_are_deleted_once_their_rows_are_in_the_dataset(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal, dataset = tmp_path / "journal", f"{tmp_path}/dataset"
    old = [
        add_segment(journal, "1", [operation(1)]),
        # All its rows are refused, and are in the quarantine.
        add_segment(journal, "2", [operation(2, tries=0)]),
    ]
    recent = add_segment(journal, "5", [operation(5)])
    unreadable = journal / OPERATIONS / "6.parquet"
    unreadable.touch()
    os.utime(unreadable, (1, 1))
    compact(spark, str(journal), Dataset(dataset), OPERATIONS_TABLE, 1000)
    copy = shutil.copy(old[0], tmp_path / "1.parquet")
    other = add_segment(tmp_path / "other", "1", [operation(number) for number in range(99)])
    new = add_segment(journal, "7", [operation(7)])
    for path in (*old, other, new):
        os.utime(path, (1, 1))
    capsys.readouterr()

    run(f"{tmp_path}/[jo]*r*", dataset, "--dry-run")
    lines = capsys.readouterr().out.splitlines()
    size = sum(path.stat().st_size for path in old)
    assert lines[:3] == [
        str(old[0]),
        str(old[1]),
        f"operations: 2 of 6 segments would be deleted, {size:,} bytes",
    ]
    assert all(path.exists() for path in old)

    run(f"{tmp_path}/[jo]*r*", dataset)
    assert [path.exists() for path in old] == [False] * 2
    assert all(path.exists() for path in (recent, unreadable, other, new))
    assert f"operations: 2 of 6 segments deleted, {size:,} bytes" in capsys.readouterr().out

    # The dataset still knows them.
    shutil.copy(copy, old[0])
    added = compact(spark, str(journal), Dataset(dataset), OPERATIONS_TABLE, 1000).added
    assert added == Counts(files=1, rows=1, kept=1)
    run(str(journal), dataset, "--days", "0")
    assert sorted(path.name for path in (journal / OPERATIONS).iterdir()) == ["6.parquet"]


def test_without_a_dataset_nothing_is_deleted(tmp_path: Path) -> None:
    path = add_segment(tmp_path / "journal", "1", [operation(1)])
    with pytest.raises(PipelineError, match="nothing is compacted here"):
        run(f"{tmp_path}/journal", f"{tmp_path}/dataset", "--days", "0")
    assert path.exists()
