"""The command `compact`: each row once, after failures and kills, and every refusal recorded."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession

from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS
from purgatory.pipeline import compaction
from purgatory.pipeline.command import parser
from purgatory.pipeline.compaction import Commit, Compaction
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs.compact import compact, run
from purgatory.pipeline.schemas import COMPACTED_OPERATIONS, OPERATIONS_TABLE
from tests.pipeline.journals import NOON, ROWS, add_segment, operation
from tests.pipeline.settings import SETTINGS


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(f"{tmp_path}/dataset")


def add(spark: SparkSession, journal: Path | str, dataset: Dataset, files: int = 1000) -> Compaction:
    """Compact the operations alone."""
    return compact(spark, str(journal), dataset, OPERATIONS_TABLE, files)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["operation_id"] for row in frame.collect())


@dataclass(frozen=True)
class Compacted:
    journal: Path
    dataset: Dataset
    output: str

    def copy(self, path: Path) -> Dataset:
        """A copy of the dataset that a test can change."""
        return Dataset(str(shutil.copytree(self.dataset.root, path)))


@pytest.fixture(scope="module")
def compacted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Compacted:
    """A journal with valid, duplicate, malformed and unreadable content, and its dataset."""
    root = tmp_path_factory.mktemp("compacted")
    journal, dataset = root / "journal", Dataset(f"{root}/dataset")
    midnight = NOON + timedelta(hours=12)
    good = [operation(1), operation(2, kind="1"), operation(3, started=midnight, kind="a/b=c ")]
    add_segment(journal, "one", [*good, operation(4, tries=0), operation(1)])
    add_segment(journal, "two", [ROWS[CHECKS]] * 2, table=CHECKS)
    add_segment(journal, "three", [ROWS[GAPS]], table=GAPS)
    (journal / OPERATIONS / "broken.parquet").write_bytes(b"no Parquet")
    (journal / OPERATIONS / ".unfinished.parquet.unfinished").write_bytes(b"")
    with redirect_stdout(StringIO()) as printed:
        run(spark, parser().parse_args(["compact", f"{journal}/", dataset.root]))
    return Compacted(journal, dataset, printed.getvalue())


def test_the_output_accounts_for_each_row_and_file(compacted: Compacted) -> None:
    lines = compacted.output.splitlines()
    assert lines[0] == (
        "operations: 2 new files, 5 rows = 3 kept + 1 duplicates + 1 quarantined; 1 files unreadable"
    )
    assert "  1 x tries is below 1" in lines
    assert "checks: 1 new files, 2 rows = 2 kept + 0 duplicates + 0 quarantined" in lines
    assert "gaps: 1 new files, 1 rows = 1 kept + 0 duplicates + 0 quarantined" in lines


def test_a_journal_becomes_a_dataset(spark: SparkSession, compacted: Compacted) -> None:
    operations = compacted.dataset.read_operations(spark)
    assert operations.columns == COMPACTED_OPERATIONS.names
    found = operations.orderBy("operation_id").collect()
    assert [row["operation_id"] for row in found] == [1, 2, 3]
    assert [row["kind"] for row in found] == ["Fetch", "1", "a/b=c "]
    assert [row["date"].isoformat() for row in found] == ["2026-03-01", "2026-03-01", "2026-03-02"]
    assert found[0]["keys"] == ["k"]
    assert compacted.dataset.read_checks(spark).count() == 2
    assert compacted.dataset.read_gaps(spark).select("lost_operations").collect() == [Row(lost_operations=3)]


def test_malformed_rows_and_files_are_in_the_quarantine(spark: SparkSession, compacted: Compacted) -> None:
    file, row = compacted.dataset.read_quarantine(spark).orderBy("reason", ascending=False).collect()
    assert file["reason"].startswith("unreadable: ")
    broken = compacted.journal / OPERATIONS / "broken.parquet"
    assert (file["source"], file["position"], file["row"]) == (f"file:{broken}", None, None)
    assert (row["reason"], row["position"], row["table"]) == ("tries is below 1", 3, "operations")
    refused: dict[str, Any] = json.loads(row["row"])
    assert refused | {"started": None} == operation(4, tries=0, started=None)


def test_other_readers_can_read_the_directories_by_date_and_kind(compacted: Compacted) -> None:
    (file,) = Path(compacted.dataset.operations).glob("date=2026-03-01/kind=Fetch/batch=0/*.parquet")
    (row,) = pq.ParquetFile(file).read().to_pylist()
    assert row == {name: value for name, value in operation(1).items() if name != "kind"}


def test_a_segment_is_compacted_once_even_if_it_was_moved_or_copied(
    spark: SparkSession, compacted: Compacted, tmp_path: Path
) -> None:
    dataset = compacted.copy(tmp_path / "dataset")
    moved = shutil.copytree(compacted.journal, tmp_path / "moved")
    assert add(spark, moved, dataset).added == Commit()
    # A month older than the newest, as if its node had been offline.
    late = add_segment(tmp_path / "late", "late", [operation(2), operation(5)])
    past = time.time() - 30 * 86400
    os.utime(late, (past, past))
    add_segment(tmp_path / "other", "other", [operation(5), operation(6, tries=0)])
    shutil.copy(compacted.journal / OPERATIONS / "one.parquet", tmp_path / "other" / OPERATIONS)
    roots = f"{compacted.journal.parent.name},{tmp_path.name}"
    everywhere = f"{tmp_path.parent}/{{{roots}}}/{{journal,late,other}}"
    added = add(spark, everywhere, dataset).added
    assert added == Commit(files=2, rows=4, kept=1, duplicates=2, quarantined=1)
    assert ids(dataset.read_operations(spark)) == [1, 2, 3, 5]
    assert dataset.read_commits(spark, OPERATIONS_TABLE).count() == 2


def test_a_batch_that_failed_halfway_is_invisible_and_is_added_once(
    spark: SparkSession, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_segment(journal, "one", [operation(1), operation(1), operation(2, tries=0)])
    overwrite = compaction._overwrite

    def add_and_fail_after(writes: int) -> None:
        left = [None] * writes

        def overwrite_and_fail(*arguments: Any) -> None:
            overwrite(*arguments)
            left.pop()
            if not left:
                raise OSError("the disk is gone")

        with monkeypatch.context() as patched:
            patched.setattr(compaction, "_overwrite", overwrite_and_fail)
            with pytest.raises(OSError, match="the disk is gone"):
                add(spark, journal, dataset)

    # A failure before the commit.
    add_and_fail_after(writes=2)
    assert Path(dataset.operations).exists()
    assert Path(dataset.quarantine).exists()
    assert ids(dataset.committed_batches(spark, OPERATIONS_TABLE)) == []
    assert dataset.read_quarantine(spark).count() == 0

    # A failure after the commit, before Spark's checkpoint knows of it.
    add_and_fail_after(writes=3)
    assert ids(dataset.read_operations(spark)) == [1]
    assert add(spark, journal, dataset).added == Commit()
    assert dataset.read_quarantine(spark).count() == 1
    (commit,) = dataset.read_commits(spark).collect()
    assert (commit["files"], commit["rows"], commit["kept"], commit["duplicates"]) == (1, 3, 1, 1)


def test_a_second_run_is_refused_and_after_a_kill_no_row_is_lost_or_repeated(
    spark: SparkSession, journal: Path, dataset: Dataset
) -> None:
    for number in range(2):
        add_segment(journal, f"{number}", [operation(number), operation(number + 1)])
    command = [sys.executable, "-m", "purgatory.pipeline", "compact", str(journal), dataset.root]
    options = ["--files-per-batch", "1", "--master", "local[1]", "--memory", "1g"]
    settings = [f"--conf={name}={value}" for name, value in SETTINGS.items()]
    with subprocess.Popen([*command, *options, *settings], start_new_session=True) as process:
        lock = Path(dataset.checkpoint("compact.lock"))
        while not lock.exists():
            assert process.poll() is None
            time.sleep(0.01)
        with pytest.raises(PipelineError, match=f"{lock}: another process holds this lock"):
            run(spark, parser().parse_args(["compact", str(journal), dataset.root]))
        # When the first batch is committed, it is writing the second.
        while not Path(dataset.commits, "table=operations", "batch=0").exists():
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert dataset.read_commits(spark).count() == 1
    run(spark, parser().parse_args(["compact", str(journal), dataset.root]))
    assert ids(dataset.read_operations(spark)) == list(range(3))
    counts = dataset.read_commits(spark).groupBy().sum("files", "rows", "kept", "duplicates").first()
    assert counts is not None
    assert tuple(counts) == (2, 4, 3, 1)


def test_a_batch_whose_counts_do_not_add_up_is_not_committed(
    spark: SparkSession, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_segment(journal, "one", [operation(1), operation(1), operation(2)])
    monkeypatch.setattr(compaction, "without_duplicates", lambda rows, known, identity: rows.limit(1))
    with pytest.raises(PipelineError, match=r"do not add up.*rows=3, kept=1"):
        add(spark, journal, dataset)
    with pytest.raises(PipelineError, match="nothing is compacted here; run: purgatory-pipeline compact"):
        dataset.read_operations(spark)


def test_a_dataset_without_its_checkpoint_refuses_new_segments(
    spark: SparkSession, compacted: Compacted, tmp_path: Path
) -> None:
    dataset = compacted.copy(tmp_path / "dataset")
    shutil.rmtree(dataset.checkpoint("compact/operations"))
    with pytest.raises(PipelineError, match="it is unknown which segments"):
        add(spark, compacted.journal, dataset)


def test_a_directory_that_is_not_a_journal_is_an_error(
    spark: SparkSession, tmp_path: Path, dataset: Dataset
) -> None:
    options = argparse.Namespace(journal=str(tmp_path), dataset=dataset, files_per_batch=1)
    with pytest.raises(PipelineError, match="not a journal, it has no directory 'operations'"):
        run(spark, options)


def test_errors_of_spark_are_raised_unchanged(
    spark: SparkSession, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Compaction, segments: DataFrame, batch: int) -> None:
        raise OSError("the cluster is gone")

    add_segment(journal, "one", [operation()])
    monkeypatch.setattr(Compaction, "add", fail)
    with pytest.raises(StreamingQueryException, match="the cluster is gone"):
        add(spark, journal, dataset)
