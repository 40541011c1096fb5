"""The tables of a dataset, and which of them belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError

from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import StoredTable
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.schemas import GAPS_TABLE
from purgatory.pipeline.tables import RECOMMENDATIONS, REPLAY_TABLES, SETTINGS
from tests.pipeline.datasets import derive

RECOMMENDATION = {"purgatory": "p", "tick_us": 1_000, "sentence": "So it is."}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(f"{tmp_path}/dataset")


def test_all_tables_of_a_dataset_are_below_its_root() -> None:
    dataset = Dataset("data/")
    assert dataset.table(GAPS_TABLE).path == "data/gaps"
    assert dataset.segments.path == "data/segments"
    assert dataset.quarantine.path == "data/quarantine"
    assert dataset.derived(SETTINGS).path == "data/replay/settings"


def test_a_table_is_replaced_whole(dataset: Dataset) -> None:
    for run, names in ((1, ("b", "a")), (2, ("c",)), (3, ())):
        rows = [RECOMMENDATION | {"purgatory": name} for name in names]
        assert dataset.new_run([RECOMMENDATIONS]) == run
        found = pa.Table.from_pylist(rows, RECOMMENDATIONS.columns)
        dataset.replace(RECOMMENDATIONS, found, run)
        stored = dataset.derived(RECOMMENDATIONS).rows()
        assert stored.schema == RECOMMENDATIONS.columns
        assert stored["purgatory"].to_pylist() == sorted(names)
    with pytest.raises(PipelineError, match="another process has made this table meanwhile"):
        dataset.replace(RECOMMENDATIONS, pa.Table.from_pylist([RECOMMENDATION], RECOMMENDATIONS.columns), 3)
    # What was written in vain is deleted.
    assert len(list(Path(dataset.derived(RECOMMENDATIONS).path).glob("*/*.parquet"))) == 2


def test_if_writing_a_table_fails_the_old_rows_stay(dataset: Dataset) -> None:
    derive(dataset, RECOMMENDATIONS, [RECOMMENDATION])
    rows = pa.Table.from_pylist([RECOMMENDATION], RECOMMENDATIONS.columns)
    broken = rows.set_column(1, "tick_us", pa.array(["on purpose"]))
    with pytest.raises(ValueError, match="on purpose"):
        dataset.replace(RECOMMENDATIONS, broken, 2)
    assert dataset.derived(RECOMMENDATIONS).rows().num_rows == 1


def test_if_a_commit_fails_its_files_are_deleted_unless_it_was_made(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    derive(dataset, RECOMMENDATIONS, [RECOMMENDATION])
    root = Path(dataset.derived(RECOMMENDATIONS).path)
    commit = StoredTable.replace

    def fail(*arguments: Any) -> None:
        raise OSError("the disk is full")

    def commit_and_fail(*arguments: Any) -> None:
        commit(*arguments)
        fail()

    rows = pa.Table.from_pylist([RECOMMENDATION], RECOMMENDATIONS.columns)
    before = sorted(root.glob("*"))
    for replaced, files in ((fail, 0), (commit_and_fail, 1)):
        monkeypatch.setattr(StoredTable, "replace", replaced)
        with pytest.raises(OSError, match="the disk is full"):
            dataset.replace(RECOMMENDATIONS, rows, 2)
        assert len(sorted(root.glob("*"))) == len(before) + files
    assert dataset.derived(RECOMMENDATIONS).rows().num_rows == 1


def test_rows_that_lack_a_column_are_not_written(dataset: Dataset) -> None:
    derive(dataset, RECOMMENDATIONS, [RECOMMENDATION])
    rows = pa.Table.from_pylist([RECOMMENDATION], RECOMMENDATIONS.columns).drop_columns(["tick_us"])
    with pytest.raises(TypeError, match="the rows have no column tick_us"):
        dataset.replace(RECOMMENDATIONS, rows, 2)
    assert dataset.derived(RECOMMENDATIONS).transaction("run") == 1


def test_of_two_processes_that_make_a_table_at_the_same_time_one_is_refused(dataset: Dataset) -> None:
    run = dataset.new_run([RECOMMENDATIONS])
    derive(dataset, RECOMMENDATIONS, [RECOMMENDATION], run=run)
    with pytest.raises(PipelineError, match="another process has made this table meanwhile"):
        dataset.replace(RECOMMENDATIONS, RECOMMENDATIONS.columns.empty_table(), run)
    assert dataset.derived(RECOMMENDATIONS).rows().num_rows == 1


def test_a_process_that_is_overtaken_while_it_commits_a_table_is_refused(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    derive(dataset, RECOMMENDATIONS, [RECOMMENDATION])
    commit = StoredTable.replace

    def be_overtaken(stored: StoredTable, *arguments: Any) -> None:
        commit(stored, stored.write_rows([RECOMMENDATION | {"purgatory": "of the other"}]), *arguments[1:])
        raise CommitFailedError("a concurrent transaction has changed the table")

    monkeypatch.setattr(StoredTable, "replace", be_overtaken)
    with pytest.raises(PipelineError, match="another process has made this table meanwhile"):
        dataset.replace(RECOMMENDATIONS, pa.Table.from_pylist([RECOMMENDATION], RECOMMENDATIONS.columns), 2)
    table = dataset.derived(RECOMMENDATIONS)
    assert table.rows()["purgatory"].to_pylist() == ["of the other"]
    # What was written in vain is deleted. The first file and the file of the other process stay.
    assert len(list(Path(table.path).glob("*/*.parquet"))) == 2


def test_tables_of_different_runs_do_not_count(dataset: Dataset) -> None:
    settings, recommendations = REPLAY_TABLES
    derive(dataset, settings, [])
    assert dataset.logs_of_run(REPLAY_TABLES) == {}
    derive(dataset, recommendations, [])
    assert list(dataset.logs_of_run(REPLAY_TABLES)) == [settings, recommendations]
    derive(dataset, settings, [], run=dataset.new_run(REPLAY_TABLES))
    assert dataset.logs_of_run(REPLAY_TABLES) == {}
    assert dataset.new_run(REPLAY_TABLES) == 3
