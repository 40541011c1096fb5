"""Batches that two processes commit side by side, or that a process has not completed. No Spark is needed.

`jobs/test_kills.py` kills whole runs of `compact`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from purgatory.pipeline.batches import Batches, BatchFiles
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import StoredTable
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.schemas import CHECKS_TABLE
from tests.pipeline.datasets import listed


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(f"{tmp_path}/dataset")


def files(dataset: Dataset, batch: int) -> BatchFiles:
    """The files of a batch of one segment, whose only row is refused."""
    segment = listed(CHECKS_TABLE, batch, rows=1) | {"kept": 0, "quarantined": 1}
    refused = {"source": segment["source"], "position": 0, "reason": "wrong", "row": "{}"}
    return BatchFiles(
        rows=[],
        quarantine=dataset.quarantine.write_rows([refused | {"table": CHECKS_TABLE.name, "batch": batch}]),
        segments=dataset.segments.write_rows([segment]),
    )


def committed(dataset: Dataset) -> tuple[list[int], list[int]]:
    """The batches of the rows in the quarantine, and of the segments."""
    quarantine, segments = (
        sorted(stored.log().to_pyarrow_table().column("batch").to_pylist())
        for stored in (dataset.quarantine, dataset.segments)
    )
    return quarantine, segments


def before_appending_to(path: str, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Act once, right before files are committed to the table at this path."""
    append = StoredTable.append

    def act_and_append(table: StoredTable, *arguments: Any) -> None:
        if table.path == path:
            monkeypatch.setattr(StoredTable, "append", append)
            act()
        append(table, *arguments)

    monkeypatch.setattr(StoredTable, "append", act_and_append)


def test_of_two_processes_that_add_a_batch_one_is_refused(dataset: Dataset) -> None:
    slow = Batches(dataset, CHECKS_TABLE)
    Batches(dataset, CHECKS_TABLE).commit(files(dataset, 1))
    with pytest.raises(
        PipelineError, match="another process added segments meanwhile, so batch 1 was not added"
    ):
        slow.commit(files(dataset, 1))
    assert repr(Batches(dataset, CHECKS_TABLE)) == f"<Batches of {dataset.root}/checks: 1>"
    assert committed(dataset) == ([1], [1])


def test_a_process_that_is_overtaken_between_two_batches_is_refused(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = DeltaTable.update_incremental

    def be_overtaken(log: DeltaTable) -> None:
        """The other process completes the first batch, and adds the second one."""
        monkeypatch.setattr(DeltaTable, "update_incremental", update)
        Batches(dataset, CHECKS_TABLE).commit(files(dataset, 2))
        update(log)

    batches = Batches(dataset, CHECKS_TABLE)
    monkeypatch.setattr(DeltaTable, "update_incremental", be_overtaken)
    batches.commit(files(dataset, 1))
    with pytest.raises(
        PipelineError, match="another process added segments meanwhile, so batch 2 was not added"
    ):
        batches.commit(files(dataset, 2))
    assert committed(dataset) == ([1, 2], [1, 2])


def test_two_processes_may_complete_the_same_batch(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(dataset, CHECKS_TABLE)
    before_appending_to(dataset.quarantine.path, lambda: Batches(dataset, CHECKS_TABLE), monkeypatch)
    batches.commit(files(dataset, 1))
    assert committed(dataset) == ([1], [1])


def test_a_failure_to_complete_a_batch_is_raised(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise CommitFailedError("the disk is full")

    batches = Batches(dataset, CHECKS_TABLE)
    before_appending_to(dataset.quarantine.path, fail, monkeypatch)
    with pytest.raises(CommitFailedError, match="the disk is full"):
        batches.commit(files(dataset, 1))


def commit_the_rows_alone(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin the first batch, and end like a killed process before its quarantine is committed."""

    def fail() -> None:
        raise CommitFailedError("killed")

    batches = Batches(dataset, CHECKS_TABLE)
    before_appending_to(dataset.quarantine.path, fail, monkeypatch)
    with pytest.raises(CommitFailedError):
        batches.commit(files(dataset, 1))


def test_a_batch_is_completed_also_if_the_table_has_newer_commits(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_the_rows_alone(dataset, monkeypatch)
    # Another program has changed the table's properties since.
    DeltaTable(dataset.table(CHECKS_TABLE).path).alter.set_table_properties({"delta.appendOnly": "false"})
    Batches(dataset, CHECKS_TABLE)
    assert committed(dataset) == ([1], [1])


def test_a_batch_that_nothing_can_complete_is_an_error(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_the_rows_alone(dataset, monkeypatch)
    # As if the log had been cleaned since.
    monkeypatch.setattr(DeltaTable, "history", lambda log: [])
    with pytest.raises(
        PipelineError, match="killed while it added batch 1, and the log no longer names the files"
    ):
        Batches(dataset, CHECKS_TABLE)
