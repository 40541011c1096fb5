"""The commands from a journal in an object store to a dataset and a page there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from purgatory.journal.schema import CHECKS
from purgatory.pipeline import locations
from purgatory.pipeline.batches import Batches, BatchFiles
from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs import compact, optimize, prune, run, watch
from purgatory.pipeline.jobs.generate import generate
from purgatory.pipeline.listing import segments
from purgatory.pipeline.schemas import CHECKS_TABLE, OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.tables import DERIVED_TABLES, GAP_MINUTES
from purgatory.pipeline.watch.monitor import HEADER
from purgatory.pipeline.workload import Workload
from tests.pipeline.alike import assert_alike, rows
from tests.pipeline.datasets import listed
from tests.pipeline.journals import ROWS, add_segment, operation, segment
from tests.pipeline.object_store import KEY, SECRET, contents, ship


@pytest.mark.long
@pytest.mark.timeout(600)
def test_all_steps_give_in_a_store_what_they_give_on_a_disk(
    spark: Spark, tmp_path: Path, bucket: str, capfd: pytest.CaptureFixture[str]
) -> None:
    generate(spark, f"{bucket}/journals/a", Workload(operations=2000, duration=300.0))
    generate(spark, f"{tmp_path}/journals/a", Workload(operations=2000, duration=300.0))
    for root in (bucket, str(tmp_path)):
        options = parser().parse_args(["run", f"{root}/journals/*", f"{root}/dataset", f"{root}/page"])
        run.check(options)
        assert run.run(spark, options) == 0
    derived = [f"{table.folder}/{table.name}" for table in DERIVED_TABLES if table is not GAP_MINUTES]
    for name in ("operations", "checks", *derived):
        assert_alike(rows(f"{bucket}/dataset/{name}"), rows(f"{tmp_path}/dataset/{name}"))
    stored = contents(bucket)
    pages = {name for name in stored if name.startswith("page/")}
    assert pages == {
        path.relative_to(tmp_path).as_posix() for path in (tmp_path / "page").rglob("*") if path.is_file()
    }
    assert f"Dataset {bucket}/dataset".encode() in stored["page/index.html"]

    # Nothing that people or programs can read has a part of the key.
    output = "".join(capfd.readouterr())
    assert f"The report is in {bucket}/page/index.html\n" in output
    for secret in (SECRET, KEY):
        assert secret not in output
        assert not [name for name, content in stored.items() if secret.encode() in content]


def test_other_programs_read_the_same_rows(spark: Spark, tmp_path: Path, bucket: str) -> None:
    add_segment(tmp_path, "one", [operation(number) for number in range(5)])
    ship(tmp_path, f"{bucket}/journal")
    dataset = Dataset(f"{bucket}/dataset")
    compact.compact(spark, f"{bucket}/journal", dataset, OPERATIONS_TABLE, 1000)
    stored = dataset.table(OPERATIONS_TABLE)
    options = dict(locations.delta_options(stored.path))
    by_polars = pl.read_delta(stored.path, storage_options=options)["operation_id"].to_list()
    files = DeltaTable(stored.path, storage_options=options).to_pyarrow_dataset()
    by_duckdb = [number for (number,) in duckdb.from_arrow(files).project("operation_id").fetchall()]
    by_arrow = stored.rows()["operation_id"].to_pylist()
    assert sorted(by_polars) == sorted(by_duckdb) == sorted(by_arrow) == list(range(5))


def test_watch_follows_a_journal_in_a_store(
    spark: Spark, tmp_path: Path, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add_segment(tmp_path, "one", [operation(number) for number in range(5)])
    ship(tmp_path, f"{bucket}/journal")
    options = parser().parse_args(["watch", f"{bucket}/journal", "--once"])
    watch.check(options)
    assert watch.run(spark, options) == 0
    header, window = capsys.readouterr().out.splitlines()
    assert header == HEADER
    assert window.startswith("2026-03-01 12:00:00           5  100.0 %")


def test_of_two_writers_one_commits_and_the_other_is_refused(bucket: str) -> None:
    dataset = Dataset(f"{bucket}/dataset")
    one, other = Batches(dataset, CHECKS_TABLE), Batches(dataset, CHECKS_TABLE)
    files = [
        BatchFiles(
            rows=dataset.table(CHECKS_TABLE).write_table(checks(key)),
            quarantine=[],
            segments=dataset.segments.write_rows([listed(CHECKS_TABLE, 1, 1)]),
        )
        for key in "ab"
    ]
    one.commit(files[0])
    with pytest.raises(PipelineError, match="another process added segments meanwhile"):
        other.commit(files[1])
    assert [row["key"] for row in rows(f"{bucket}/dataset/checks")] == ["a"]


def test_what_no_commit_names_is_deleted_in_time(
    bucket: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Dataset(f"{bucket}/dataset")
    checks_table = dataset.table(CHECKS_TABLE)
    for key in "ab":
        batches = Batches(dataset, CHECKS_TABLE)
        batches.commit(BatchFiles(rows=checks_table.write_table(checks(key)), quarantine=[], segments=[]))
    # A killed process leaves files.
    (left,) = checks_table.write_table(checks("left"))
    options = parser().parse_args(["optimize", dataset.root])
    optimize.run(None, options)  # type: ignore[arg-type]  # it needs no Spark
    assert locations.exists(checks_table.path_of(left.path))
    assert f"{checks_table.path}: 2 files merged, 0 old files deleted" in capsys.readouterr().out

    # The store has no files of last week. So the week is over at once.
    vacuum = DeltaTable.vacuum

    def at_once(log: DeltaTable, **options: Any) -> list[str]:
        return vacuum(log, retention_hours=0, enforce_retention_duration=False, **options)

    monkeypatch.setattr(DeltaTable, "vacuum", at_once)
    optimize.run(None, options)  # type: ignore[arg-type]  # it needs no Spark
    assert not locations.exists(checks_table.path_of(left.path))
    assert [row["key"] for row in rows(checks_table.path)] == ["a", "b"]


def test_segments_are_deleted_once_their_rows_are_in_the_dataset(
    spark: Spark, tmp_path: Path, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add_segment(tmp_path, "one", [ROWS[CHECKS]], table=CHECKS)
    ship(tmp_path, f"{bucket}/journal")
    dataset = Dataset(f"{bucket}/dataset")
    compact.run(spark, parser().parse_args(["compact", f"{bucket}/journal", dataset.root]))
    for name in ("one", "two"):
        add_segment(tmp_path, name, [ROWS[CHECKS] | {"key": name}], table=CHECKS)
    with locations.created(f"{bucket}/journal/checks/two.parquet") as file:
        file.write((tmp_path / CHECKS / "two.parquet").read_bytes())
    options = parser().parse_args(["prune", f"{bucket}/journal", dataset.root, "--days", "0"])
    prune.check(options)
    capsys.readouterr()
    prune.run(spark, options)
    assert "checks: 1 of 2 segments deleted" in capsys.readouterr().out
    assert locations.names_in(f"{bucket}/journal/checks") == ["two.parquet"]


def test_a_segment_that_is_gone_before_it_is_read_is_an_error(
    spark: Spark, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_segment(tmp_path, "one", [ROWS[CHECKS]], table=CHECKS)
    ship(tmp_path, f"{bucket}/journal")
    listed = segments(f"{bucket}/journal", CHECKS)
    locations.delete(f"{bucket}/journal/checks/one.parquet")
    monkeypatch.setattr(compact, "segments", lambda journal, table: listed)
    dataset = Dataset(f"{bucket}/dataset")
    with pytest.raises(
        PipelineError, match=r"one\.parquet: it was moved or deleted before compact had read it"
    ):
        compact.compact(spark, f"{bucket}/journal", dataset, CHECKS_TABLE, 1000)
    assert rows(f"{dataset.root}/checks") == []
    # Nothing is left of the run but the logs.
    assert {name.split("/")[2] for name in contents(bucket) if name.startswith("dataset/")} == {"_delta_log"}


@pytest.mark.parametrize("journal", ["journal", "journal/nested", "."])
def test_a_dataset_in_a_journal_is_refused(journal: str, tmp_path: Path, bucket: str) -> None:
    add_segment(tmp_path, "one", [operation()])
    ship(tmp_path, f"{bucket}/journal")
    root = os.path.normpath(journal) if journal != "." else ""
    options = parser().parse_args(["compact", f"{bucket}/journal", f"{bucket}/{root}"])
    with pytest.raises(PipelineError, match="one of them is in the other"):
        compact.check(options)


def checks(key: str) -> Any:
    return segment(CHECKS, [ROWS[CHECKS] | {"key": key}])
