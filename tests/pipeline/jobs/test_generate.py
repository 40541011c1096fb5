"""The command `generate`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from purgatory.journal.schema import CHECKS, OPERATIONS
from purgatory.pipeline import compaction
from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs import generate
from purgatory.pipeline.jobs.compact import compact
from purgatory.pipeline.schemas import CHECKS_TABLE, OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.transforms.segments import rows_in
from purgatory.pipeline.workload import NUMBERS, Workload
from tests.pipeline.settings import NO_SPARK


@pytest.mark.parametrize("text", ["2026-05-04T23:30", "2026-05-04T23:30Z", "2026-05-05T01:30+02:00"])
def test_the_start_is_in_utc_unless_it_has_an_offset(text: str) -> None:
    start = parser().parse_args(["generate", "x", "--start", text]).start
    assert start.isoformat() == "2026-05-04T23:30:00+00:00"


def test_a_synthetic_journal_can_be_compacted(
    spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = f"{tmp_path}/synthetic"
    arguments = [
        "generate",
        journal,
        "--operations",
        "1_000",
        "--malformed",
        "0.1",
        "--kind",
        "Poll:0.1:1:0.2",
    ]
    options = parser().parse_args([*arguments, "--start", "2026-05-04T23:30"])
    generate.run(spark, options)
    truth = json.loads(Path(journal, "truth.json").read_text())
    assert truth["kinds"] == [{"name": "Poll", "median": 0.1, "sigma": 1.0, "timeout": 0.2}]
    assert (truth["operations"], truth["start"]) == (1000, "2026-05-04T23:30:00+00:00")

    # Without duplicates, no rows are sorted to find them.
    monkeypatch.delattr(compaction, "duplicates")
    dataset = Dataset(str(tmp_path / "dataset"))
    added = compact(spark, journal, dataset, OPERATIONS_TABLE, 1000).added
    assert (added.rows, added.duplicates, added.unreadable_files) == (1000, 0, 0)
    assert 50 < added.quarantined < 150
    dates = {date.isoformat() for date in dataset.table(OPERATIONS_TABLE).rows()["date"].to_pylist()}
    assert dates == {"2026-05-04", "2026-05-05"}
    for file in Path(journal, CHECKS).glob("*.parquet"):
        assert rows_in(pa.py_buffer(file.read_bytes()), CHECKS_TABLE).num_rows > 0

    with pytest.raises(PipelineError, match="exists already"):
        generate.check(options)


def test_a_journal_that_could_not_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = parser().parse_args(["generate", f"{tmp_path}/journal"])

    def fail(spark: Spark, journal: str, workload: Workload) -> None:
        Path(journal).mkdir()
        raise OSError("the disk is full")

    monkeypatch.setattr(generate, "generate", fail)
    with pytest.raises(OSError, match="the disk is full"):
        generate.run(NO_SPARK, options)
    generate.check(options)
    assert list(tmp_path.iterdir()) == []


def test_a_task_writes_its_segments_and_writes_them_again_if_it_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "_ROWS_PER_FILE", 20)
    for number in (0, 2, 1, 2):
        generate.write_segments(str(tmp_path), Workload(operations=45, malformed=0), number)
    files = sorted((tmp_path / OPERATIONS).iterdir())
    assert [file.name for file in files] == ["000000.parquet", "000001.parquet", "000002.parquet"]
    found = [pq.read_table(file)["operation_id"].to_pylist() for file in files]
    assert [len(ids) for ids in found] == [20, 20, 5]
    assert sorted(each % NUMBERS for ids in found for each in ids) == list(range(45))
    assert len(list((tmp_path / CHECKS).iterdir())) == 3
