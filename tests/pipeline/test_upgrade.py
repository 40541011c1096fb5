"""Journals and datasets outlive a version.

What 0.1.0 wrote is read, also by a version that has one more column and one more outcome.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import purgatory
from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.commands import parser
from purgatory.pipeline.compaction import Compaction
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs import prune
from purgatory.pipeline.jobs.compact import compact
from purgatory.pipeline.schemas import OPERATIONS_TABLE, TABLES
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.tables import MINUTES, SUMMARY_TABLES
from tests.pipeline.journals import add_segment, operation, segment
from tests.pipeline.settings import NO_SPARK, SETTINGS

WRITTEN: Final = Path(__file__).with_name("written_by_0_1_0")
OPERATIONS_IN_IT: Final = 12


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WRITTEN / "journal", tmp_path / "journal"))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(str(shutil.copytree(WRITTEN / "dataset", tmp_path / "dataset")))


def compacted(spark: Spark, journal: Path, dataset: Dataset) -> list[Compaction]:
    return [compact(spark, str(journal), dataset, table, 1000) for table in TABLES]


def test_a_journal_of_0_1_0_is_read(spark: Spark, journal: Path, tmp_path: Path) -> None:
    dataset = Dataset(f"{tmp_path}/new")
    added = [each.added for each in compacted(spark, journal, dataset)]
    assert [each.kept for each in added] == [OPERATIONS_IN_IT, 2, 1]
    assert (added[0].quarantined, added[0].unreadable_files) == (1, 1)


def test_a_dataset_of_0_1_0_is_read_and_takes_new_segments(
    spark: Spark, journal: Path, dataset: Dataset
) -> None:
    before = dataset.table(OPERATIONS_TABLE).rows().num_rows
    assert before == OPERATIONS_IN_IT
    assert set(dataset.logs_of_run(SUMMARY_TABLES)) == set(SUMMARY_TABLES)
    # What it has read is not read again, wherever the journal is now.
    assert not any(each.added.rows for each in compacted(spark, journal, dataset))
    # The same rows in another file, and a new one.
    (path,) = (journal / OPERATIONS).glob("2026*.parquet")
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows, path.with_name("rewritten.parquet"), compression="none")
    add_segment(journal, "new", [operation(1)])
    again, *_ = compacted(spark, journal, dataset)
    assert (again.added.kept, again.added.duplicates) == (1, OPERATIONS_IN_IT)
    assert dataset.table(OPERATIONS_TABLE).rows().num_rows == before + 1


def test_prune_deletes_nothing_of_which_0_1_0_has_not_recorded_the_path(
    journal: Path, dataset: Dataset
) -> None:
    files = sorted(journal.rglob("*.parquet"))
    prune.run(NO_SPARK, parser().parse_args(["prune", str(journal), dataset.root, "--days", "0"]))
    assert sorted(journal.rglob("*.parquet")) == files


# A later version, which the tests make of this one: a column and an outcome more.
COLUMN: Final = """
        Column(
            "shard",
            pa.int32(),
            lambda chunk: pa.nulls(chunk.rows, pa.int32()),
            later=True,
        ),
    ],
)

CHECKS_TABLE: Final"""
OUTCOMES: Final = '("completed", "expired", "cancelled", "failed", "shed")'


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The directory to import the later version from."""
    package = Path(shutil.copytree(Path(purgatory.__file__).parent, tmp_path / "later" / "purgatory"))
    for module, old, new in (
        ("journal/schema.py", "\n    ],\n)\n\nCHECKS_TABLE: Final", COLUMN),
        ("observer.py", '("completed", "expired", "cancelled", "failed")', OUTCOMES),
    ):
        text = (package / module).read_text()
        assert text.count(old) == 1
        (package / module).write_text(text.replace(old, new))
    return package.parent


def run_later(later: Path, *arguments: str) -> str:
    """Run a command of the later version. Returns its output."""
    command = [
        sys.executable,
        "-m",
        "purgatory.pipeline",
        *arguments,
        "--master",
        "local[1]",
        "--memory",
        "1g",
    ]
    settings = [f"--conf={name}={value}" for name, value in SETTINGS.items()]
    environment = os.environ | {"PYTHONPATH": str(later)}
    return subprocess.run(
        [*command, *settings], env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_version_with_a_column_and_an_outcome_more_reads_what_0_1_0_wrote(
    spark: Spark, later: Path, journal: Path, dataset: Dataset, tmp_path: Path
) -> None:
    new = segment(OPERATIONS, [operation(1, outcome="shed", lateness_us=None)])
    new = new.append_column("shard", pa.array([7], pa.int32()))
    pq.write_table(new, journal / OPERATIONS / "new.parquet")
    # The page is made of the tables that 0.1.0 has summarized, and then of those that are made anew.
    page = f"{tmp_path}/page"
    run_later(later, "report", dataset.root, page)
    output = run_later(later, "run", str(journal), dataset.root, page)
    assert output.startswith("operations: 2 new files, 1 row = 1 kept + 0 duplicates")
    operations = DeltaTable(dataset.table(OPERATIONS_TABLE).path).to_pyarrow_table(
        columns=["outcome", "shard"]
    )
    found = operations.to_pylist()
    assert {"outcome": "shed", "shard": 7} in found
    assert [row["shard"] for row in found].count(None) == OPERATIONS_IN_IT
    minutes = DeltaTable(dataset.derived(MINUTES).path).to_pyarrow_table()
    assert sum(minutes["shed"].to_pylist()) == 1
    # This version reads the dataset without the column.
    assert dataset.table(OPERATIONS_TABLE).rows().num_rows == OPERATIONS_IN_IT + 1


def test_an_outcome_of_a_later_version_is_in_the_quarantine(spark: Spark, tmp_path: Path) -> None:
    add_segment(tmp_path / "journal", "new", [operation(1), operation(2, outcome="shed", lateness_us=None)])
    added = compacted(spark, tmp_path / "journal", Dataset(f"{tmp_path}/dataset"))[0]
    assert (added.added.kept, added.added.quarantined) == (1, 1)
    assert dict(added.reasons) == {"outcome is none of completed, expired, cancelled, failed": 1}
