"""`compact` is killed, the journal is moved or changed, and it runs again: each row is in the dataset once.

Checks have no identity. So a segment that is read again would double them, and nothing would hide it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from purgatory.journal.schema import CHECKS
from purgatory.pipeline import locations
from purgatory.pipeline.commands import parser
from purgatory.pipeline.compaction import Compaction
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import StoredTable
from purgatory.pipeline.intake import Counts
from purgatory.pipeline.jobs.compact import compact, run
from purgatory.pipeline.schemas import CHECKS_TABLE, OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from tests.pipeline.journals import ROWS, add_segment, operation
from tests.pipeline.object_store import ship
from tests.pipeline.settings import SETTINGS


class Killed(BaseException):
    """Raised where the process is killed. Nothing catches it."""


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture(params=["disk", pytest.param("store", marks=pytest.mark.long)])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The folder of the dataset and of the journal that is read."""
    root: str = request.getfixturevalue("bucket") if request.param == "store" else str(tmp_path)
    return root


@pytest.fixture
def dataset(root: str) -> Dataset:
    return Dataset(f"{root}/dataset")


def add_checks(journal: Path, name: str, *keys: str) -> Path:
    """A segment with a check of each key, and a malformed one."""
    malformed = ROWS[CHECKS] | {"key": "malformed", "tried": -1}
    return add_segment(
        journal, name, [*(ROWS[CHECKS] | {"key": key} for key in keys), malformed], table=CHECKS
    )


def shipped(journal: Path, root: str) -> str:
    """The address of the journal in the root, to which it is shipped if it is not there already."""
    if journal.is_relative_to(root):
        return str(journal)
    ship(journal.parent, f"{root}/journals")
    return f"{root}/journals/{journal.name}"


def add(spark: Spark, journal: Path, dataset: Dataset) -> Counts:
    """Compact the checks, two segments in a batch."""
    address = shipped(journal, dataset.root.removesuffix("/dataset"))
    return compact(spark, address, dataset, CHECKS_TABLE, 2).added


def read(spark: Spark, table: StoredTable, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table, sorted, after making sure that three programs read the same."""
    if not table.exists:
        return []
    by_arrow = [tuple(row.values()) for row in table.rows().select(columns).to_pylist()]
    options = dict(locations.delta_options(table.path))
    by_polars = pl.read_delta(table.path, storage_options=options).select(columns).rows()
    files = DeltaTable(table.path, storage_options=options).to_pyarrow_dataset()
    by_duckdb = duckdb.from_arrow(files).project(", ".join(f'"{name}"' for name in columns)).fetchall()
    assert sorted(by_arrow) == sorted(by_polars) == sorted(by_duckdb)
    return sorted(by_arrow)


def keys(spark: Spark, dataset: Dataset) -> list[str]:
    return [key for (key,) in read(spark, dataset.table(CHECKS_TABLE), "key")]


# What is done with a batch, in this order. The workers read the segments, and write their rows.
STEPS: Final = (
    "read the segments",
    "write the segments",
    "commit the rows",
    "commit the quarantine",
    "commit the segments",
)


@contextmanager
def killed_before(step: str, monkeypatch: pytest.MonkeyPatch, *, batch: int) -> Iterator[None]:
    """Kill the block before this step of its batch, counted from 1."""
    left = len(STEPS) * (batch - 1) + STEPS.index(step)

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def act_or_die(*arguments: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return act(*arguments)

        return act_or_die

    with monkeypatch.context() as patched:
        patched.setattr(Compaction, "_taken_in", counted(Compaction._taken_in))
        for name in ("write_rows", "append"):
            patched.setattr(StoredTable, name, counted(getattr(StoredTable, name)))
        with pytest.raises(Killed):
            yield


def stay(journal: Path) -> Path:
    return journal


def move(journal: Path) -> Path:
    return journal.rename(journal.with_name("moved"))


def delete(journal: Path) -> Path:
    """Delete a segment of the batch that was killed."""
    (journal / CHECKS / "3.parquet").unlink()
    return journal


def poison(journal: Path) -> Path:
    """Add files that cannot be read, between the others."""
    (journal / CHECKS / "2b.parquet").touch()
    (journal / CHECKS / "3b.parquet").write_bytes(b"no Parquet")
    return journal


EVERY_KILL: Final = [(step, change) for step in STEPS for change in (stay, move, delete, poison)]
A_SAMPLE: Final = (("commit the rows", move), ("commit the segments", poison))


@pytest.mark.parametrize(
    ("step", "change"),
    [
        pytest.param(
            step,
            change,
            id=f"before it can {step}, {change.__name__}",
            marks=() if (step, change) in A_SAMPLE else pytest.mark.long,
        )
        for step, change in EVERY_KILL
    ],
)
def test_no_row_is_lost_or_doubled(
    step: str,
    change: Callable[[Path], Path],
    spark: Spark,
    journal: Path,
    dataset: Dataset,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(1, 6):
        add_checks(journal, f"{number}", f"a{number}", f"b{number}")
    first, second, rest = (
        [f"{side}{number}" for side in "ab" for number in batch] for batch in ((1, 2), (3, 4), (5,))
    )
    committed = STEPS.index(step) > STEPS.index("commit the rows")
    seen = sorted(first + second * committed)

    with killed_before(step, monkeypatch, batch=2):
        add(spark, journal, dataset)
    assert keys(spark, dataset) == seen

    journal = change(journal)
    lost = {"a3", "b3"} if change is delete and not committed else set()
    added = add(spark, journal, dataset)
    assert keys(spark, dataset) == sorted({*first, *second, *rest} - lost)
    assert added.kept == len({*first, *second, *rest} - lost) - len(seen)
    assert added.unreadable_files == (2 if change is poison else 0)

    # What was read is complete, too: each segment once, each refused row once, and nothing is new.
    listed = read(spark, dataset.segments, "name", "kept", "quarantined", "duplicates")
    # After a move, the files that were read are copies at another path.
    copies = [each for each in listed if each[1:] == (0, 0, 3)]
    assert len(copies) == (len(seen) // 2 if change is move else 0)
    readable = [f"{number}.parquet" for number in range(1, 6) if number != 3 or not lost]
    broken = ["2b.parquet", "3b.parquet"] if change is poison else []
    expected = [(name, 2, 1, 0) for name in readable] + [(name, 0, 0, 0) for name in broken]
    assert sorted(listed) == sorted([*expected, *copies])
    refused = read(spark, dataset.quarantine, "source", "position")
    assert sorted(Path(source).name for source, _ in refused) == readable
    assert add(spark, journal, dataset) == Counts()
    assert keys(spark, dataset) == sorted({*first, *second, *rest} - lost)


@pytest.mark.long
def test_after_a_kill_with_signal_9_no_row_is_lost_or_repeated(
    spark: Spark, journal: Path, dataset: Dataset, root: str
) -> None:
    for number in range(4):
        add_segment(journal, f"{number}", [operation(number), operation(number + 1)])
    command = [sys.executable, "-m", "purgatory.pipeline", "compact", shipped(journal, root), dataset.root]
    options = ["--files-per-batch", "1", "--master", "local[1]", "--memory", "1g"]
    settings = [f"--conf={name}={value}" for name, value in SETTINGS.items()]
    first = f"{dataset.table(OPERATIONS_TABLE).path}/_delta_log/{1:020}.json"
    with subprocess.Popen([*command, *options, *settings], start_new_session=True) as process:
        # When the first batch is committed, it is working on the second.
        while not locations.exists(first):
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    moved = shipped(journal.rename(journal.with_name("moved")), root)
    run(spark, parser().parse_args(["compact", moved, dataset.root]))
    found = read(spark, dataset.table(OPERATIONS_TABLE), "operation_id")
    assert found == [(number,) for number in range(5)]
    listed = dataset.segments.rows()
    # The first segment is at two paths.
    assert [pc.sum(listed[name]).as_py() for name in ("rows", "kept", "duplicates")] == [10, 5, 5]
