"""The command `compact`: each row once, and every refusal recorded. `test_kills` has kills and failures."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS
from purgatory.pipeline import compaction
from purgatory.pipeline.commands import parser
from purgatory.pipeline.compaction import Compaction
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import StoredTable
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.intake import Counts, Intake, ReadSegment, take_in
from purgatory.pipeline.jobs.compact import compact, run
from purgatory.pipeline.listing import Segment, segments
from purgatory.pipeline.schemas import CHECKS_TABLE, GAPS_TABLE, OPERATIONS_TABLE, TABLES
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.transforms.duplicates import Positions, duplicates
from tests.pipeline.journals import NOON, ROWS, add_segment, operation
from tests.pipeline.odd_files import odd_files
from tests.pipeline.settings import NO_SPARK


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(f"{tmp_path}/dataset")


def add(spark: Spark, journal: Path | str, dataset: Dataset, *, retry: bool = False) -> Compaction:
    """Compact the operations alone."""
    return compact(spark, str(journal), dataset, OPERATIONS_TABLE, 1000, retry=retry)


def ids(dataset: Dataset) -> list[int]:
    return sorted(dataset.table(OPERATIONS_TABLE).rows()["operation_id"].to_pylist())


@dataclass(frozen=True)
class Compacted:
    journal: Path
    dataset: Dataset
    output: str

    def copy(self, path: Path) -> Dataset:
        """A copy of the dataset that a test can change."""
        return Dataset(str(shutil.copytree(self.dataset.root, path)))


@pytest.fixture(scope="module")
def compacted(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Compacted:
    """A journal with valid, duplicate, malformed and unreadable content, and its dataset."""
    root = tmp_path_factory.mktemp("compacted")
    journal, dataset = root / "journal", Dataset(f"{root}/dataset")
    midnight = NOON + timedelta(hours=12)
    good = [operation(1), operation(2, kind="1"), operation(3, started=midnight, kind="a/b=c " * 50)]
    add_segment(journal, "one", [*good, operation(4, tries=0), operation(1)])
    add_segment(journal, "two", [ROWS[CHECKS]] * 2, table=CHECKS)
    add_segment(journal, "three", [ROWS[GAPS]], table=GAPS)
    (journal / OPERATIONS / "broken.parquet").write_bytes(b"no Parquet")
    (journal / OPERATIONS / "empty.parquet").touch()
    (journal / OPERATIONS / ".unfinished.parquet.unfinished").write_bytes(b"")
    with redirect_stdout(StringIO()) as printed:
        run(spark, parser().parse_args(["compact", f"{journal}/", dataset.root]))
    return Compacted(journal, dataset, printed.getvalue())


def test_the_output_accounts_for_each_row_and_file(compacted: Compacted) -> None:
    lines = compacted.output.splitlines()
    assert lines[0] == (
        "operations: 3 new files, 5 rows = 3 kept + 1 duplicate + 1 quarantined; 2 files unreadable"
    )
    assert "  1 x tries is below 1" in lines
    assert "checks: 1 new file, 2 rows = 2 kept + 0 duplicates + 0 quarantined" in lines
    assert "gaps: 1 new file, 1 row = 1 kept + 0 duplicates + 0 quarantined" in lines


def test_a_journal_becomes_a_dataset(compacted: Compacted) -> None:
    operations = compacted.dataset.table(OPERATIONS_TABLE).rows()
    assert operations.schema == OPERATIONS_TABLE.columns
    found = operations.sort_by("operation_id").to_pylist()
    assert [row["operation_id"] for row in found] == [1, 2, 3]
    assert [row["kind"] for row in found] == ["Fetch", "1", "a/b=c " * 50]
    assert [row["date"].isoformat() for row in found] == ["2026-03-01", "2026-03-01", "2026-03-02"]
    assert found[0]["keys"] == ["k"]
    assert compacted.dataset.table(CHECKS_TABLE).rows().num_rows == 2
    assert compacted.dataset.table(GAPS_TABLE).rows()["lost_operations"].to_pylist() == [3]


def test_malformed_rows_are_in_the_quarantine(compacted: Compacted) -> None:
    (row,) = compacted.dataset.quarantine.rows().to_pylist()
    assert row["source"] == f"{compacted.journal}/operations/one.parquet"
    assert (row["reason"], row["position"], row["table"]) == ("tries is below 1", 3, "operations")
    refused: dict[str, Any] = json.loads(row["row"])
    assert refused | {"started": None} == operation(4, tries=0, started=None)


def test_each_file_is_listed_with_its_counts_or_with_the_reason_why_it_is_unreadable(
    compacted: Compacted,
) -> None:
    listed = compacted.dataset.segments.rows().sort_by("name").to_pylist()
    broken, empty, one = (row for row in listed if row["table"] == OPERATIONS)
    assert (broken["name"], broken["rows"]) == ("broken.parquet", None)
    assert broken["source"] == f"{compacted.journal}/operations/broken.parquet"
    assert broken["reason"].startswith("unreadable: ")
    assert (empty["name"], empty["reason"]) == ("empty.parquet", "unreadable: Parquet file size is 0 bytes")
    counts = ("rows", "kept", "duplicates", "quarantined", "reason", "batch")
    assert [one[name] for name in counts] == [5, 3, 1, 1, None, 1]
    assert one["size"] == os.path.getsize(one["source"])


def test_a_segment_is_compacted_once_even_if_it_was_moved_or_copied(
    spark: Spark, compacted: Compacted, tmp_path: Path
) -> None:
    dataset = compacted.copy(tmp_path / "dataset")
    moved = shutil.copytree(compacted.journal, tmp_path / "moved")
    of_moved = add(spark, moved, dataset)
    assert (of_moved.added, of_moved.copies) == (Counts(files=2, unreadable_files=2), 1)
    assert "  1 file had the bytes of a file that was read, and added no rows" in of_moved.report()
    assert add(spark, moved, dataset).copies == 0
    # A month older than the newest, as if its node had been offline.
    late = add_segment(tmp_path / "late", "late", [operation(2, kind="1"), operation(5)])
    past = time.time() - 30 * 86400
    os.utime(late, (past, past))
    add_segment(tmp_path / "other", "other", [operation(5), operation(6, tries=0)])
    shutil.copy(compacted.journal / OPERATIONS / "one.parquet", tmp_path / "other" / OPERATIONS)
    added = add(spark, f"{tmp_path}/*", dataset).added
    assert added == Counts(files=2, rows=4, kept=1, duplicates=2, quarantined=1)
    assert ids(dataset) == [1, 2, 3, 5]
    assert dataset.segments.rows()["table"].to_pylist().count(OPERATIONS) == 9


def test_without_new_segments_spark_does_not_start(compacted: Compacted, tmp_path: Path) -> None:
    dataset = compacted.copy(tmp_path / "dataset")
    for table in TABLES:
        assert compact(NO_SPARK, str(compacted.journal), dataset, table, 1000).added == Counts()
    assert "context" not in vars(NO_SPARK)


def test_a_segment_that_was_half_copied_is_read_when_it_is_complete(
    spark: Spark, journal: Path, dataset: Dataset
) -> None:
    path = add_segment(journal, "one", [operation(number) for number in range(100)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert add(spark, journal, dataset).added == Counts(files=1, unreadable_files=1)
    again = add(spark, journal, dataset)
    assert again.added == Counts()
    assert again.report().endswith("1 file unreadable as before; --retry reads all such files again")
    # A retry also reads those that have not changed.
    assert add(spark, journal, dataset, retry=True).added == Counts(files=1, unreadable_files=1)

    path.write_bytes(whole)
    assert add(spark, journal, dataset).added == Counts(files=1, rows=100, kept=100)
    assert ids(dataset) == list(range(100))
    *_, listed = dataset.segments.rows().sort_by("batch").to_pylist()
    assert (listed["rows"], listed["reason"]) == (100, None)
    # It has the bytes that were read, whatever its time.
    os.utime(path, (1, 1))
    again = add(spark, journal, dataset, retry=True)
    assert (again.added, again.copies, again.changed) == (Counts(), 1, 0)


def test_files_of_one_name_are_all_read_and_a_file_that_changes_is_read_again(
    spark: Spark, tmp_path: Path, dataset: Dataset
) -> None:
    for node in (1, 2):
        rows = [ROWS[CHECKS] | {"key": f"{node}"}]
        path = add_segment(tmp_path / f"n{node}", "part-0", rows, table=CHECKS)
        os.utime(path, (1, 1))
    shutil.copytree(tmp_path / "n2", tmp_path / "n3")

    def read() -> Compaction:
        return compact(spark, f"{tmp_path}/n*", dataset, CHECKS_TABLE, 1000)

    report = read().report().splitlines()
    assert report == [
        "checks: 2 new files, 2 rows = 2 kept + 0 duplicates + 0 quarantined",
        "  2 files had the name of another file, and counted as new, too",
        "  1 file had the bytes of a file that was read, and added no rows",
    ]
    assert read().report() == "checks: 0 new files, 0 rows = 0 kept + 0 duplicates + 0 quarantined"
    add_segment(tmp_path / "n1", "part-0", [ROWS[CHECKS] | {"key": "3"}], table=CHECKS)
    assert "  1 file had changed since the last reading, and counted as new" in read().report()
    assert sorted(dataset.table(CHECKS_TABLE).rows()["key"].to_pylist()) == ["1", "2", "3"]


def test_copies_of_an_unreadable_file_are_unreadable_and_a_copy_of_a_file_that_is_gone_is_an_error(
    spark: Spark, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        path = add_segment(journal, name, [ROWS[GAPS]], table=GAPS)
        path.write_bytes(b"no Parquet")
    added = compact(spark, str(journal), dataset, GAPS_TABLE, 1000).added
    assert added == Counts(files=2, unreadable_files=2)

    for name in ("one", "two"):
        add_segment(journal, name, [ROWS[GAPS]], table=GAPS)
    monkeypatch.setattr(Segment, "digest", lambda segment: "the digest of what was there before")
    with pytest.raises(PipelineError, match=r"one.parquet: it changed while compact read it"):
        compact(spark, str(journal), dataset, GAPS_TABLE, 1000)
    assert not dataset.table(GAPS_TABLE).rows().num_rows

    found = segments(str(journal), GAPS)
    monkeypatch.undo()
    path.with_name("two.parquet").unlink()
    with pytest.raises(PipelineError, match=r"two.parquet: it was moved or deleted"):
        Compaction(spark, dataset, GAPS_TABLE).add(found, 1000)


def test_a_file_that_could_not_be_read_for_want_of_permission_is_read_once_it_may_be(
    spark: Spark, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_segment(journal, "one", [operation(1)])
    reason = f"unreadable: {os.strerror(errno.EACCES)}"
    with monkeypatch.context() as patched:
        patched.setattr(compaction, "take_in", partial(refused, reason))
        assert add(spark, journal, dataset).reasons == {reason: 1}
        patched.setattr(os, "access", lambda path, mode: False)
        assert add(spark, journal, dataset).still_refused == 1
    assert add(spark, journal, dataset).added == Counts(files=1, rows=1, kept=1)


def refused(reason: str, *arguments: Any) -> Iterator[Intake]:
    """Reads nothing: the system refuses it. (It refuses root nothing.)"""
    *_, paths = arguments
    yield Intake([ReadSegment(path, problem=reason) for path in paths], [], [])


def test_a_file_that_changes_between_two_readings_is_not_committed(
    spark: Spark, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = add_segment(journal, "one", [operation(1), operation(1)])

    def change(*arguments: Any) -> Mapping[str, Positions]:
        add_segment(journal, "one", [operation(1), operation(1, node="b")])
        return duplicates(*arguments)

    assert path.exists()
    monkeypatch.setattr(compaction, "duplicates", change)
    with pytest.raises(PipelineError, match="do not add up"):
        add(spark, journal, dataset)
    assert not dataset.table(OPERATIONS_TABLE).rows().num_rows


def test_of_500_damaged_foreign_and_odd_files_every_good_row_arrives_and_every_bad_file_has_a_reason(
    spark: Spark, journal: Path, dataset: Dataset
) -> None:
    good = odd_files(journal / OPERATIONS, 500)
    compaction = add(spark, journal, dataset)
    assert compaction.added.files == 500
    rows = dataset.table(OPERATIONS_TABLE).rows().to_pylist()
    assert sorted(row["operation_id"] for row in rows if row["node"] == "good") == sorted(good)
    listed = dataset.segments.rows().to_pylist()
    assert len(listed) == 500
    for row in listed:
        assert (row["reason"] is None) == (row["rows"] is not None)
        if row["name"].startswith("bad"):
            assert row["reason"].startswith("unreadable: "), row
    assert add(spark, journal, dataset).still_refused == compaction.added.unreadable_files


def test_a_batch_whose_counts_do_not_add_up_is_not_committed(
    spark: Spark, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_segment(journal, "one", [operation(1), operation(1), operation(2)])
    with monkeypatch.context() as patched:
        patched.setattr(compaction, "duplicates", lambda context, table, paths, known: {paths[0]: [0, 1]})
        with pytest.raises(PipelineError, match=r"do not add up.*rows=3, kept=1.*written 1 and 0"):
            add(spark, journal, dataset)
    monkeypatch.setattr(compaction, "take_in", with_a_row_too_many)
    with pytest.raises(PipelineError, match=r"do not add up.*rows=4, kept=4.*written 3 and 0"):
        add(spark, journal, dataset)
    assert not dataset.table(OPERATIONS_TABLE).rows().num_rows


def with_a_row_too_many(*arguments: Any) -> Iterator[Intake]:
    for intake in take_in(*arguments):
        segments = [replace(segment, kept=segment.kept + 1) for segment in intake.segments]
        yield replace(intake, segments=segments)


def test_a_segment_that_is_gone_when_its_batch_is_read_is_an_error(
    spark: Spark, journal: Path, dataset: Dataset
) -> None:
    paths = [add_segment(journal, name, [ROWS[CHECKS]], table=CHECKS) for name in ("one", "two")]
    found = segments(str(journal), CHECKS)
    paths[1].unlink()
    with pytest.raises(PipelineError, match=rf"{paths[1]}: it was moved .* its batch of 2 segments"):
        Compaction(spark, dataset, CHECKS_TABLE).add(found, 1000)
    assert not dataset.table(CHECKS_TABLE).rows().num_rows


def test_a_segment_that_spark_passes_over_is_an_error(
    spark: Spark, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = add_segment(journal, "one", [ROWS[GAPS]], table=GAPS)
    monkeypatch.setattr(compaction, "take_in", lambda *arguments: iter([]))
    with pytest.raises(PipelineError, match=f"{path}: Spark has not read it"):
        compact(spark, str(journal), dataset, GAPS_TABLE, 1000)


def test_errors_of_spark_are_raised_unchanged(
    spark: Spark, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_segment(journal, "one", [ROWS[GAPS]], table=GAPS)

    def fail(*arguments: object) -> None:
        raise RuntimeError("the cluster is gone")

    monkeypatch.setattr(compaction, "take_in", fail)
    with pytest.raises(Py4JJavaError, match="the cluster is gone"):
        compact(spark, str(journal), dataset, GAPS_TABLE, 1000)
    assert not dataset.segments.rows().num_rows


def on_disk(dataset: Dataset) -> set[str]:
    """The paths of all files in the tables, committed or not."""
    return {str(path) for path in Path(dataset.root).rglob("*.parquet")}


def committed(dataset: Dataset) -> set[str]:
    tables = (dataset.table(OPERATIONS_TABLE), dataset.quarantine, dataset.segments)
    return {path for table in tables for path in table.paths()}


def test_if_the_disk_is_full_the_files_of_the_run_are_deleted(
    spark: Spark, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_segment(journal, "one", [operation(1)])
    add(spark, journal, dataset)
    before = on_disk(dataset)
    add_segment(journal, "two", [operation(2), operation(3, tries=0)])
    with monkeypatch.context() as patched:
        patched.setattr(compaction, "take_in", with_a_full_disk)
        with pytest.raises(Py4JJavaError, match="No space left"):
            add(spark, journal, dataset)
    assert on_disk(dataset) == before
    with monkeypatch.context() as patched:
        patched.setattr(StoredTable, "append", fail_for_want_of_space)
        with pytest.raises(OSError, match="No space left"):
            add(spark, journal, dataset)
    assert on_disk(dataset) == before
    assert add(spark, journal, dataset).added == Counts(files=1, rows=2, kept=1, quarantined=1)


def with_a_full_disk(*arguments: Any) -> Iterator[Intake]:
    """Fails after everything is written."""
    yield from take_in(*arguments)
    fail_for_want_of_space()


def fail_for_want_of_space(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_a_first_reading_of_duplicates_wrote_is_deleted(
    spark: Spark, journal: Path, dataset: Dataset
) -> None:
    add_segment(journal, "one", [operation(1), operation(1), operation(2, tries=0)])
    add(spark, journal, dataset)
    assert on_disk(dataset) == committed(dataset)


def test_the_files_of_a_commit_that_was_made_stay_although_what_follows_it_fails(
    spark: Spark, journal: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = StoredTable.append

    def append_and_fail(*arguments: Any) -> None:
        append(*arguments)
        fail_for_want_of_space()

    add_segment(journal, "one", [operation(1), operation(2, tries=0)])
    with monkeypatch.context() as patched:
        patched.setattr(StoredTable, "append", append_and_fail)
        with pytest.raises(OSError, match="No space left"):
            add(spark, journal, dataset)
    assert add(spark, journal, dataset).added == Counts()
    assert ids(dataset) == [1]
    assert dataset.quarantine.rows().num_rows == 1


def test_a_compaction_shows_its_counts_and_its_dataset() -> None:
    shown = repr(Compaction(NO_SPARK, Dataset("d"), GAPS_TABLE))
    assert shown.startswith("<Compaction of gaps into d: Counts(files=0")
