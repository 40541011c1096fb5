"""The command `prune`: it deletes what the dataset has, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.intake import Counts
from purgatory.pipeline.jobs import prune
from purgatory.pipeline.jobs.compact import compact
from purgatory.pipeline.listing import Segment
from purgatory.pipeline.recorded import Recorded
from purgatory.pipeline.schemas import OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from tests.pipeline.journals import add_segment, operation
from tests.pipeline.settings import NO_SPARK


def run(*arguments: str) -> None:
    """Run the command, which needs no Spark."""
    options = parser().parse_args(["prune", *arguments])
    prune.check(options)
    prune.run(NO_SPARK, options)


def test_old_segments_are_deleted_once_their_rows_are_in_the_dataset(
    spark: Spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    whole = old[0].read_bytes()
    # Of one name and one size, and of one name and another size.
    twin = add_segment(tmp_path / "twin", "1", [operation(9)])
    assert twin.stat().st_size == len(whole)
    other = add_segment(tmp_path / "other", "1", [operation(number) for number in range(99)])
    new = add_segment(journal, "7", [operation(7)])
    for path in (*old, twin, other, new):
        os.utime(path, (1, 1))
    capsys.readouterr()

    run(f"{tmp_path}/*", dataset, "--dry-run")
    lines = capsys.readouterr().out.splitlines()
    size = sum(path.stat().st_size for path in old)
    assert lines[:3] == [
        str(old[0]),
        str(old[1]),
        f"operations: 2 of 7 segments would be deleted, {size:,} bytes",
    ]
    assert all(path.exists() for path in old)

    run(f"{tmp_path}/*", dataset)
    assert [path.exists() for path in old] == [False] * 2
    assert all(path.exists() for path in (recent, unreadable, twin, other, new))
    assert f"operations: 2 of 7 segments deleted, {size:,} bytes" in capsys.readouterr().out

    # The dataset still knows them.
    old[0].write_bytes(whole)
    compaction = compact(spark, str(journal), Dataset(dataset), OPERATIONS_TABLE, 1000)
    assert (compaction.added, compaction.copies) == (Counts(files=1, rows=1, kept=1), 1)
    run(str(journal), dataset, "--days", "0")
    assert sorted(path.name for path in (journal / OPERATIONS).iterdir()) == ["6.parquet"]


def test_a_file_that_was_written_again_under_its_name_stays_until_it_is_read(
    spark: Spark, tmp_path: Path
) -> None:
    journal, dataset = tmp_path / "journal", Dataset(f"{tmp_path}/dataset")
    path = add_segment(journal, "1", [operation(1)])
    status = path.stat()
    compact(spark, str(journal), dataset, OPERATIONS_TABLE, 1000)
    add_segment(journal, "1", [operation(2)])
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    run(str(journal), dataset.root, "--days", "0")
    assert path.exists()
    os.utime(path)
    assert compact(spark, str(journal), dataset, OPERATIONS_TABLE, 1000).changed == 1
    run(str(journal), dataset.root, "--days", "0")
    assert not path.exists()


def test_a_file_that_links_lead_to_is_deleted_once_and_one_that_is_gone_is_no_error(
    spark: Spark, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    journals, dataset = tmp_path / "journals", Dataset(f"{tmp_path}/dataset")
    paths = [add_segment(journals / "node", name, [operation(1)]) for name in ("1", "2")]
    (journals / "latest").symlink_to("node")
    compact(spark, f"{journals}/*", dataset, OPERATIONS_TABLE, 1000)
    has = Recorded.has

    def has_and_goes(recorded: Recorded, segment: Segment) -> bool:
        found = has(recorded, segment)
        paths[0].unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Recorded, "has", has_and_goes)
    run(f"{journals}/*", dataset.root, "--days", "0")
    assert "operations: 2 of 2 segments deleted" in capsys.readouterr().out
    assert not any(path.exists() for path in paths)
    run(f"{journals}/*", dataset.root, "--days", "0")


def test_without_a_dataset_nothing_is_deleted(tmp_path: Path) -> None:
    path = add_segment(tmp_path / "journal", "1", [operation(1)])
    with pytest.raises(PipelineError, match="nothing is compacted here"):
        run(f"{tmp_path}/journal", f"{tmp_path}/dataset", "--days", "0")
    assert path.exists()
