"""The command `optimize`: fewer files, the same rows."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from purgatory.journal.schema import CHECKS
from purgatory.pipeline.batches import Batches
from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs import optimize
from purgatory.pipeline.schemas import CHECKS_TABLE
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.tables import GAP_MINUTES
from tests.pipeline.datasets import add_batch, derive
from tests.pipeline.journals import ROWS


def test_small_files_are_merged_and_files_that_no_table_needs_are_deleted(
    spark: Spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = Dataset(f"{tmp_path}/dataset")
    checks = dataset.table(CHECKS_TABLE)
    for _ in range(3):
        add_batch(dataset, CHECKS_TABLE, [ROWS[CHECKS]])
    derive(dataset, GAP_MINUTES, [])
    # What a killed process left ten days ago, and what another one is writing now.
    left, being_written = Path(checks.path, "left.parquet"), Path(checks.path, "new.parquet")
    for path in (left, being_written):
        path.touch()
    os.utime(left, (time.time() - 10 * 86400,) * 2)

    optimize.run(spark, parser().parse_args(["optimize", dataset.root]))

    lines = capsys.readouterr().out.splitlines()
    assert f"{checks.path}: 3 files merged, 1 old file deleted" in lines
    assert f"{dataset.segments.path}: 3 files merged, 0 old files deleted" in lines
    assert f"{dataset.derived(GAP_MINUTES).path}: 0 files merged, 0 old files deleted" in lines
    assert (left.exists(), being_written.exists()) == (False, True)
    assert len(checks.log().file_uris()) == 1
    assert dataset.table(CHECKS_TABLE).rows().num_rows == 3
    # `compact` still knows what it has read.
    assert dataset.segments.rows().num_rows == 3
    assert Batches(dataset, CHECKS_TABLE).last == 3
